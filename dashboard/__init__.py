"""The Streamlit pages: what was decided, why, and how it went. Reads through `pointsman.queries` alone.

Nothing here writes to the database; feedback goes to the gateway like anybody's. Start it with
`pointsman dashboard`, which runs the command of `dashboard.launch`.
"""
