"""Recovery: what has to happen before a database that was restored to an earlier moment may sell again.

The restored database does not know what was sold after the moment: the codes look unsold and the numbers untaken.
`recovery.deeds.recover` withholds the codes and starts a new epoch of numbers; `recovery.signs` tells that it is due.
"""
