"""`python -m pointsman.commands`: the same as the script `pointsman`."""

from pointsman.commands import main

main()
