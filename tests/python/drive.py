#!/usr/bin/env python3
"""Drives one dialog through the gateway with nothing but grpcio and server reflection.

The script is the same for the embedded desktop and for a real program: launch the application, look at its
window, write into its entry, look at the pixels, press OK, see the window go. It prints one line a step and
exits 0 when every step was as promised, 1 when one was not, 2 on wrong use.
"""

import argparse
import hashlib
import pathlib
import struct
import sys
import time
import uuid
import zlib

import grpc
from google.protobuf import descriptor_pool, message_factory
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import (
    ProtoReflectionDescriptorDatabase,
)

SERVICE = "maka.gateway.v1.ComputerUse"


class Gateway:
    """Calls any method of the service with plain dictionaries, by reflection alone."""

    def __init__(self, channel, token):
        self.channel = channel
        self.metadata = [("authorization", f"Bearer {token}")]
        database = ReflectionWithToken(channel, self.metadata)
        self.pool = descriptor_pool.DescriptorPool(database)
        self.methods = self.pool.FindServiceByName(SERVICE).methods_by_name

    def call(self, method, timeout=30, **fields):
        descriptor = self.methods[method]
        request = message_factory.GetMessageClass(descriptor.input_type)(**fields)
        answer = message_factory.GetMessageClass(descriptor.output_type)
        kind = self.channel.unary_stream if descriptor.server_streaming else self.channel.unary_unary
        callable_ = kind(
            f"/{SERVICE}/{method}",
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=answer.FromString,
        )
        return callable_(request, timeout=timeout, metadata=self.metadata)

    def reason(self, error):
        """The closed reason of a refusal: google.rpc.ErrorInfo among the status details. The gateway
        describes those messages by reflection too, so no further package is needed."""
        message = lambda name: message_factory.GetMessageClass(self.pool.FindMessageTypeByName(name))
        for key, value in error.trailing_metadata() or []:
            if key == "grpc-status-details-bin":
                for detail in message("google.rpc.Status").FromString(value).details:
                    if detail.type_url.endswith("/google.rpc.ErrorInfo"):
                        return message("google.rpc.ErrorInfo").FromString(detail.value).reason
        return ""

    def enum(self, message, field, number):
        """The name of an enum value, as the contract spells it."""
        descriptor = message.DESCRIPTOR.fields_by_name[field].enum_type
        return descriptor.values_by_number[number].name


class ReflectionWithToken(ProtoReflectionDescriptorDatabase):
    """The stock database sends no metadata; reflection here needs a valid principal."""

    def __init__(self, channel, metadata):
        super().__init__(grpc.intercept_channel(channel, AddMetadata(metadata)))


class AddMetadata(grpc.StreamStreamClientInterceptor):
    def __init__(self, metadata):
        self.metadata = metadata

    def intercept_stream_stream(self, continuation, details, requests):
        details = details._replace(metadata=list(details.metadata or []) + self.metadata)
        return continuation(details, requests)


def expect(condition, what):
    print(("ok    " if condition else "WRONG ") + what, flush=True)
    if not condition:
        sys.exit(1)


def read_image(gateway, session_id, image):
    """Fetches an image in chunks and checks length, hash and form."""
    data = b""
    for chunk in gateway.call("ReadImage", session_id=session_id, image_id=image.image_id):
        expect(chunk.offset == len(data), f"chunk at {chunk.offset}") if chunk.offset else None
        data += chunk.data
    digest = "sha256:" + hashlib.sha256(data).hexdigest()
    expect(len(data) == image.byte_length and digest == image.sha256, f"image of {len(data)} bytes matches its hash")
    width, height = struct.unpack(">II", data[16:24])
    expect(
        data[:8] == b"\x89PNG\r\n\x1a\n" and (width, height) == (image.width_px, image.height_px),
        f"it is a PNG of {width}x{height}",
    )
    return data


def pixels(png):
    """The unfiltered-enough content for a comparison: the inflated IDAT stream."""
    position, packed = 8, b""
    while position < len(png):
        length, kind = struct.unpack(">I4s", png[position : position + 8])
        if kind == b"IDAT":
            packed += png[position + 8 : position + 8 + length]
        position += 12 + length
    return zlib.decompress(packed)


def find(snapshot, role, text=None):
    for element in snapshot.elements:
        if element.role == role and text in (None, element.title, element.label):
            return element
    expect(False, f"the window has a {role} {text or ''}".rstrip())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--address", default="127.0.0.1:50051", help="host:port, or unix:PATH (default %(default)s)")
    parser.add_argument("--token-file", required=True, type=pathlib.Path, help="file with the agent's token")
    parser.add_argument("--app", default="org.maka.TestEntry", help="app id to launch (default %(default)s)")
    parser.add_argument("--text", default="Grüße, 世界", help="what to write into the entry")
    parser.add_argument("--save", type=pathlib.Path, help="folder for the pictures")
    arguments = parser.parse_args()

    channel = grpc.insecure_channel(arguments.address, options=[("grpc.default_authority", "localhost")])
    grpc.channel_ready_future(channel).result(timeout=30)
    gateway = Gateway(channel, arguments.token_file.read_text().strip())

    session_id = gateway.call("BeginSession").session_id
    print(f"      session {session_id}")
    launched = gateway.call(
        "LaunchApp", session_id=session_id, tool_call_id=str(uuid.uuid4()), app=arguments.app, wait_for_window_ms=20000
    )
    outcome = gateway.enum(launched, "outcome", launched.outcome)
    expect(outcome == "OUTCOME_OK", f"launched {arguments.app}: {outcome} {launched.error.code}".rstrip())
    expect(bool(launched.launched.windows), "its window appeared")
    window = {"pid": launched.launched.pid, "window_id": launched.launched.windows[0].window_id}

    before = gateway.call("Snapshot", session_id=session_id, window=window, image="IMAGE_DELIVERY_REFERENCE").snapshot
    expect(bool(before.elements), f"snapshot with {len(before.elements)} elements")
    picture_before = read_image(gateway, session_id, before.image)
    entry = find(before, "AXTextField")

    written = gateway.call(
        "Dispatch",
        session_id=session_id,
        tool_call_id=str(uuid.uuid4()),
        tier="TIER_AX",
        snapshot_id=before.snapshot_id,
        element={"token": entry.token, "expect_digest": entry.digest},
        set_value={"value": arguments.text},
        observe_after={"image": "IMAGE_DELIVERY_REFERENCE", "settle": True},
    )
    outcome = gateway.enum(written, "outcome", written.outcome)
    effect = gateway.enum(written, "effect", written.effect)
    expect(outcome == "OUTCOME_OK", f"set_value: {outcome} {written.error.code}".rstrip())
    expect(effect == "EFFECT_CONFIRMED", f"set_value: {effect}, decision {written.decision_id}")
    after = written.snapshot
    expect(after.snapshot_id not in ("", before.snapshot_id), "a fresh snapshot came with it")
    expect(find(after, "AXTextField").value == arguments.text, "the entry reads back the text")
    picture_after = read_image(gateway, session_id, after.image)
    expect(pixels(picture_before) != pixels(picture_after), "the pixels changed")

    button = find(after, "AXButton", "OK")
    pressed = gateway.call(
        "Dispatch",
        session_id=session_id,
        tool_call_id=str(uuid.uuid4()),
        tier="TIER_AX",
        snapshot_id=after.snapshot_id,
        element={"token": button.token, "expect_digest": button.digest},
        click={},
        observe_after={"settle": True},
    )
    outcome = gateway.enum(pressed, "outcome", pressed.outcome)
    expect(outcome == "OUTCOME_OK", f"click OK: {outcome} {pressed.error.code}".rstrip())
    gone = pressed.observation_error.code == "window_gone"
    expect(gone or pressed.HasField("snapshot"), "a fresh snapshot, or window_gone")

    # A real program may take a moment to end: its end is awaited by looking until the window is gone.
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        try:
            gateway.call("Snapshot", session_id=session_id, window=window)
        except grpc.RpcError as error:
            expect(
                error.code() == grpc.StatusCode.NOT_FOUND and gateway.reason(error) == "window_gone",
                f"the next look says {gateway.reason(error)}",
            )
            break
    else:
        expect(False, "the window went away within 30 s")

    if arguments.save:
        arguments.save.mkdir(parents=True, exist_ok=True)
        (arguments.save / "before.png").write_bytes(picture_before)
        (arguments.save / "after.png").write_bytes(picture_after)
        print(f"      pictures in {arguments.save}")
    gateway.call("EndSession", session_id=session_id)
    print("ok    session ended")


if __name__ == "__main__":
    main()
