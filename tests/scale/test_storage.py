"""S3, from a server that behaves like it: sources, targets and state there, here, and on both sides."""

from __future__ import annotations

import pytest
from tests.scale.conftest import BATCH, PARTITION, told

from allonym.errors import UsageError
from allonym.scale import anonymize_on_ray

pytest.importorskip("pyarrow")
KEYS = {
    "AWS_ACCESS_KEY_ID": "testing",
    "AWS_SECRET_ACCESS_KEY": "testing",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_EC2_METADATA_DISABLED": "true",
}


def run(source, target, policy, plans, **more):
    return anonymize_on_ray(source, target, policy, plans=plans, batch_size=BATCH, partition_size=PARTITION, **more)


@pytest.fixture(scope="module")
def bucket():
    """The URI of a bucket on a server that behaves like S3, as a function of the path in it."""
    server = pytest.importorskip("moto.server")
    pytest.importorskip("flask")
    from pyarrow.fs import FileSystem

    patch = pytest.MonkeyPatch()
    for name, value in KEYS.items():
        patch.setenv(name, value)
    held = server.ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    held.start()
    host, port = held.get_host_and_port()

    def uri(path: str) -> str:
        return f"s3://lake/{path}?scheme=http&endpoint_override={host}:{port}&allow_bucket_creation=true"

    filesystem, _ = FileSystem.from_uri(uri(""))
    filesystem.create_dir("lake")
    yield uri, filesystem
    held.stop()
    patch.undo()


def objects(filesystem, folder: str) -> dict[str, bytes]:
    from pyarrow.fs import FileSelector

    found = [f for f in filesystem.get_file_info(FileSelector(folder, recursive=True)) if f.is_file]
    return {f.path.removeprefix(f"{folder}/"): filesystem.open_input_file(f.path).readall() for f in found}


@pytest.mark.slow
def test_s3(serial, bucket, source, policy, expected, tmp_path):
    uri, filesystem = bucket
    for path in source.rglob("*"):
        if path.is_file():
            with filesystem.open_output_stream(
                f"lake/in/{path.relative_to(source).as_posix()}", compression=None
            ) as out:
                out.write(path.read_bytes())

    def stop(done, total):
        if done > 60_000:
            raise KeyboardInterrupt

    plans = tmp_path / "plans.jsonl"
    with pytest.raises(KeyboardInterrupt):
        run(uri("in"), uri("made/out"), policy, plans, progress=stop)
    assert any(name.endswith(".part") for name in objects(filesystem, "lake/made/.out.allonym-ray"))
    with pytest.raises(UsageError, match="unfinished run"):
        run(uri("in"), uri("made/out"), policy, plans)
    with pytest.raises(UsageError, match="differ: policy"):
        run(uri("in"), uri("made/out"), policy.with_(threshold=0.9), plans, resume=True)
    report = run(uri("in"), uri("made/out"), policy, plans, resume=True)
    made = objects(filesystem, "lake/made") | {"plans.jsonl": plans.read_bytes()}
    assert (made, told(report)) == expected("", "out")
    with pytest.raises(UsageError, match="exists; --overwrite"):
        run(uri("in"), uri("made/out"), policy, plans, overwrite=False)
    # from there to here, and back
    run(uri("in/c.txt"), tmp_path / "c.txt", policy, None)
    run(tmp_path / "c.txt", uri("back/"), policy, None)
    assert objects(filesystem, "lake/back") == {"c.txt": (tmp_path / "c.txt").read_bytes()}
    assert (tmp_path / "c.txt").read_text() == "mail [EMAIL_ADDRESS_1]"
    with pytest.raises(UsageError, match="there is no file or folder lake/nothing"):
        run(uri("nothing"), uri("other"), policy, None)
    with pytest.raises(UsageError, match="never changed"):
        run(uri("in/b.csv"), uri("in/b.csv"), policy, None)
    with pytest.raises(UsageError, match="inside the source"):
        run(uri("in"), uri("in/deeper"), policy, None)
