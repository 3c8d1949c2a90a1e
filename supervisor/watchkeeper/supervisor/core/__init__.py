"""The supervisor's core: what is known of a browser, and what follows from each thing that happens.

Rules: no sockets, clocks, logging or event loops. State in, input in, state out, commands out. Time is an argument
(seconds since the epoch). Whatever the browser sends, ``step`` never raises: bad data becomes state.
"""
