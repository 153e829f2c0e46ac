"""One module per page; each has a `page()` that `dashboard.app` puts in the navigation.

The folder must not be called `pages`: Streamlit would serve each file in it as a page of its own,
past `dashboard.access`, until the first visit has gone through `app.py`.
"""
