"""REST API and dashboard; needs the extra ``headway-scheduler[web]``."""

from headway.extras import require

require("web")
