"""What every answer says to the browser about itself."""

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

CONTENT_SECURITY_POLICY = "; ".join(
    (
        "default-src 'self'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "frame-src 'none'",
        "worker-src 'none'",
        "object-src 'none'",
        "base-uri 'none'",
        "form-action 'self'",
        "frame-ancestors 'none'",
    )
)
SECURITY = {
    "content-security-policy": CONTENT_SECURITY_POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}


# One year. Other names below the host are left alone: they may be served by somebody else.
STRICT_TRANSPORT_SECURITY = {"strict-transport-security": "max-age=31536000"}


class SecurityHeaders:
    """Adds the headers, and lets nothing be stored that does not say it may be.

    With *secure* the application is reached by HTTPS, and browsers are told to use nothing else.
    """

    def __init__(self, app: ASGIApp, secure: bool = False) -> None:
        self._app = app
        self._headers = SECURITY | (STRICT_TRANSPORT_SECURITY if secure else {})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(self._headers)
                headers.setdefault("cache-control", "no-store")
            await send(message)

        await self._app(scope, receive, sending)
