"""Streams that are signed as webhooks are: for a developer's machine, which no webhook reaches (OP-147).

The secret of a key is computed and kept nowhere: it stays the same for as long as the key is good, so what it was
written into need not change with every stream, and only who holds the key ever hears it.
"""

from __future__ import annotations

import base64
import hmac

from voucherd import clock
from voucherd.events.listeners import StreamSigning
from voucherd.ids import derive
from voucherd.webhooks.signing import SECRET_PREFIX, sign


class ListenerSecrets:
    """Makes the secrets of keys that listen."""

    def __init__(self, root: bytes) -> None:
        self._root = derive(root, "webhooks/listener")

    def signing(self, key_id: int) -> StreamSigning:
        """How the streams of this key are signed."""
        digest = hmac.digest(self._root, key_id.to_bytes(8), "sha256")
        secret = SECRET_PREFIX + base64.b64encode(digest).decode()

        def head(message_id: str, body: bytes) -> bytes:
            now_s = int(clock.now().timestamp())
            signature = sign([secret], message_id, now_s, body)
            return b"webhook-timestamp: %d\nwebhook-signature: %b\n" % (now_s, signature.encode())

        return StreamSigning(secret, head)
