"""A proxy between a client and a PostgreSQL server that can lose the answer to a COMMIT."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress

_COMMITTED = b"COMMIT\0"  # the tag with which the server tells that a transaction is committed
_PIECE = 65_536


class TcpProxy:
    """Passes everything on, until ``losses`` are set: then so many answers to a COMMIT are lost, together with their
    connections. What was committed stays so.
    """

    def __init__(self, port: int) -> None:
        self._target = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self.losses = 0
        self.lost = 0
        self._open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):  # closed
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(("127.0.0.1", self._target))
                self._open += [client, server]
                threading.Thread(target=self._pass, args=(client, server), daemon=True).start()
                threading.Thread(target=self._answer, args=(server, client), daemon=True).start()

    def _pass(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(_PIECE):
                target.sendall(data)
        _end(source, target)

    def _answer(self, server: socket.socket, client: socket.socket) -> None:
        with suppress(OSError):
            while data := server.recv(_PIECE):
                if self.losses and _COMMITTED in data:
                    self.losses -= 1
                    self.lost += 1
                    break
                client.sendall(data)
        _end(server, client)

    def close(self) -> None:
        """End every connection."""
        self._listener.close()
        _end(*self._open)


def _end(*sockets: socket.socket) -> None:
    for one in sockets:
        with suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)
        one.close()
