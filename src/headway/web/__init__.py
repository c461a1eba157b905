"""REST API and dashboard; needs the extra ``headway[web]``."""

from headway.extras import require

require("web")
