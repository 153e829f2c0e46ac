"""Budgets and rate limits: terms (`terms`), leases in Postgres (`store`), the hot path (`ledger`), people (`manage`)."""

from pointsman.budgets.ledger import Ledger
from pointsman.budgets.pricing import dearest, estimate
from pointsman.budgets.reservation import FREE, Reservation
from pointsman.budgets.store import Store
from pointsman.budgets.terms import Budget, Catalogue

__all__ = ["FREE", "Budget", "Catalogue", "Ledger", "Reservation", "Store", "dearest", "estimate"]
