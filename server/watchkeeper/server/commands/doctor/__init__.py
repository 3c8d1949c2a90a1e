"""``watchkeeper doctor``: what is found, what is missing, and how to mend it.

Rules: looks and tries, changes nothing. Each finding that is wrong comes with its remedy. The status is 1 when
something would keep the server from its job, else 0. One subject, one file; each gives its findings as it looks.
"""

from .examine import examine
from .finding import Finding

__all__ = ["Finding", "examine"]
