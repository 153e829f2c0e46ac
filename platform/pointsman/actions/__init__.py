"""What people do to a running Pointsman, from dashboard or command line: each checks a role and leaves a record.

    actor     who acts, with which role; the record of it
    routers   promote, roll back, shadow
    gates     start, stop
    alarms    acknowledge, resolve
    dials     set, retire

An action is one transaction with its record. Import from the files.
"""
