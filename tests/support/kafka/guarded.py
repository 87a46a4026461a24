"""A broker that lets nobody in without a password and TLS, and allows nothing that is not granted.

Tests themselves come in through the plain listener, whose clients may do everything.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from support.kafka.broker import Broker, Cluster, free_ports

PASSWORDS = {"owner": "hush-7xk2-owner", "guest": "hush-9qe4-guest"}
"""Of the users that there are, each unlike anything else that is ever printed."""
ALL = ("CREATE", "ALTER", "DELETE", "DESCRIBE", "READ", "WRITE")


class GuardedCluster(Cluster):
    """One broker with a listener that needs TLS and a user's password, and one that needs TLS."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._certificates = folder / "certificates"
        self._guarded, self._encrypted = free_ports(2)
        make_authority(self._certificates)
        make_authority(self._certificates / "other")

    @property
    def guarded(self) -> str:
        """The address for users with passwords."""
        return f"127.0.0.1:{self._guarded}"

    @property
    def encrypted(self) -> str:
        """The address that asks for no password, for clients that may do everything."""
        return f"127.0.0.1:{self._encrypted}"

    @property
    def authority(self) -> Path:
        """Whom clients must trust."""
        return self._certificates / "ca.pem"

    @property
    def other_authority(self) -> Path:
        """One that the broker's certificate is not of."""
        return self._certificates / "other" / "ca.pem"

    def settings(self, user: str, mechanism: str = "PLAIN", **others: str) -> dict[str, str]:
        """What a client of this user needs; others with `_` for `.`."""
        return {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": mechanism,
            "sasl.username": user,
            "sasl.password": PASSWORDS[user],
            "ssl.ca.location": str(self.authority),
        } | {name.replace("_", "."): value for name, value in others.items()}

    def allow(self, user: str, prefix: str, operations: Iterable[str] = ALL) -> None:
        """Grant a user rights on all topics whose names begin so."""
        rules = [
            AclBinding(
                *(ResourceType.TOPIC, prefix, ResourcePatternType.PREFIXED, f"User:{user}", "*"),
                *(AclOperation[operation], AclPermissionType.ALLOW),
            )
            for operation in operations
        ]
        admin = self._admin()
        for made in admin.create_acls(rules).values():
            made.result(20)

    def add_scram_users(self) -> None:
        """Let the users in by SCRAM, too."""
        how = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
        users = [
            UserScramCredentialUpsertion(user, how, password.encode())
            for user, password in PASSWORDS.items()
        ]
        admin = self._admin()
        for made in admin.alter_user_scram_credentials(users).values():
            made.result(20)

    def _admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.address, "log_level": 0})

    def _listeners(self, broker: Broker) -> Mapping[str, tuple[str, int]]:
        return {
            **super()._listeners(broker),
            "GUARDED": ("SASL_SSL", self._guarded),
            "ENCRYPTED": ("SSL", self._encrypted),
        }

    def _settings(self, broker: Broker) -> dict[str, object]:
        module = "org.apache.kafka.common.security"
        users = " ".join(f'user_{user}="{password}"' for user, password in PASSWORDS.items())
        listener = "listener.name.guarded"
        return {
            **super()._settings(broker),
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": self._certificates / "broker.pem",
            f"{listener}.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
            f"{listener}.plain.sasl.jaas.config": f"{module}.plain.PlainLoginModule required "
            f"{users};",
            f"{listener}.scram-sha-512.sasl.jaas.config": f"{module}.scram.ScramLoginModule "
            "required;",
        }


def make_authority(folder: Path) -> None:
    """`ca.pem`, and `broker.pem`: a key with a certificate for 127.0.0.1 that it has signed."""
    folder.mkdir(parents=True)
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    new = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
    authority = [folder / "ca-key.pem", "-out", folder / "ca.pem", "-subj", "/CN=authority"]
    _openssl(*new, "-keyout", *authority)
    signed = ["-CA", folder / "ca.pem", "-CAkey", folder / "ca-key.pem", "-out", certificate]
    named = ["-subj", "/CN=broker", "-addext", "subjectAltName=IP:127.0.0.1"]
    _openssl(*new, "-keyout", key, *signed, *named)
    (folder / "broker.pem").write_text(key.read_text() + certificate.read_text())


def _openssl(*arguments: str | Path) -> None:
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)
