"""One module per page; each has a `page()` that `dashboard.app` puts in the navigation."""
