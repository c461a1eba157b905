"""Who asks, and what they may do: the words of the domain, for the web."""

from headway.domain.access import Identity as Identity
from headway.domain.access import Known as Known
from headway.domain.access import Scope as Scope
