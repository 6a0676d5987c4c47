"""The pages: what PEP 503, 592, 658, 691, 700 and 714 ask of them, and the record they are."""

import json
import re
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from simple_repository import parser

from scripts import facts, files, index
from scripts.errors import PublishError
from scripts.index import Catalog
from tests import shelf

AT = datetime(2026, 12, 1, 10, 20, 2, tzinfo=UTC)


def catalog(folder: Path, *revisions: int) -> Catalog:
    read = [facts.read(shelf.wheel(folder, revision)) for revision in revisions]
    return Catalog(project="sglang").adding((each, AT) for each in read)


def test_the_plus_of_a_local_version_is_quoted_in_every_link(tmp_path: Path) -> None:
    made = catalog(tmp_path, 1)
    (file,) = json.loads(index.json_page(made))["files"]
    assert file["url"] == "../../files/sglang-0.5.18%2Bsm120.1-py3-none-any.whl"
    assert file["filename"] == "sglang-0.5.18+sm120.1-py3-none-any.whl"
    page = index.html_page(made)
    assert 'href="../../files/sglang-0.5.18%2Bsm120.1-py3-none-any.whl#sha256=' in page
    assert "+" not in page.partition('href="')[2].partition('"')[0]


def test_json_says_everything_that_the_standards_have(tmp_path: Path) -> None:
    page = json.loads(index.json_page(catalog(tmp_path, 1)))
    path = next(tmp_path.glob("*.whl"))
    assert page["meta"] == {"api-version": "1.1"}
    assert (page["name"], page["versions"]) == ("sglang", ["0.5.18+sm120.1"])
    (file,) = page["files"]
    assert file["hashes"] == {"sha256": files.sha256(path)}
    assert file["size"] == path.stat().st_size
    assert file["upload-time"] == "2026-12-01T10:20:02Z"
    assert file["requires-python"] == ">=3.10, <4"
    assert file["core-metadata"] == {"sha256": facts.read(path).metadata_sha256}
    assert "yanked" not in file


def test_html_says_what_html_can_with_both_spellings_of_the_sidecar(tmp_path: Path) -> None:
    page = index.html_page(catalog(tmp_path, 1))
    read = facts.read(next(tmp_path.glob("*.whl")))
    assert f"#sha256={read.sha256}" in page
    assert 'data-requires-python="&gt;=3.10, &lt;4"' in page
    assert f'data-core-metadata="sha256={read.metadata_sha256}"' in page
    assert f'data-dist-info-metadata="sha256={read.metadata_sha256}"' in page


def test_versions_stand_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    made = catalog(tmp_path, 10, 2, 1)
    assert made.versions == ("0.5.18+sm120.10", "0.5.18+sm120.2", "0.5.18+sm120.1")
    assert json.loads(index.json_page(made))["versions"] == list(made.versions)


def test_the_json_page_is_the_record(tmp_path: Path) -> None:
    made = catalog(tmp_path, 1, 2).yanking("0.5.18+sm120.1", "broken")
    text = index.json_page(made)
    assert index.parse(text) == made
    assert index.json_page(index.parse(text)) == text


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
@given(reason=st.text(st.characters(codec="utf-8", exclude_categories=["C"]), min_size=1))
def test_a_reason_reads_the_same_from_both_pages(tmp_path: Path, reason: str) -> None:
    path = tmp_path / "sglang-0.5.18+sm120.1-py3-none-any.whl"
    if not path.exists():
        shelf.wheel(tmp_path)
    made = Catalog(project="sglang").adding([(facts.read(path), AT)])
    made = made.yanking("0.5.18+sm120.1", reason)
    html = parser.parse_html_project_page(index.html_page(made), "sglang")
    assert [file.yanked for file in html.files] == [reason]
    assert index.parse(index.json_page(made)) == made


def test_a_yank_is_of_one_version_and_can_be_taken_back(tmp_path: Path) -> None:
    made = catalog(tmp_path, 1, 2)
    yanked = made.yanking("0.5.18+sm120.1", "broken")
    assert [file.yanked for file in yanked.files] == ["broken", None]
    assert yanked.yanking("0.5.18+sm120.1", None) == made


def test_the_root_lists_projects_by_their_normalized_names() -> None:
    assert 'href="sglang/"' in index.html_root(["sglang"])
    names = [f"name{number}" for number in range(9)]
    listed = json.loads(index.json_root(names[::-1]))["projects"]
    assert listed == [{"name": name} for name in names]
    assert re.findall(r'href="(\w+)/"', index.html_root(names[::-1])) == names


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "[]",
        '{"meta": {"api-version": "1.1"}, "name": "sglang", "files": [{}]}',
        '{"meta": {"api-version": "1.1"}, "name": "sglang", "files": [{"filename": "x.whl"}]}',
    ],
)
def test_a_page_that_is_cut_off_or_not_ours_is_told(text: str) -> None:
    with pytest.raises(PublishError, match="cannot be read"):
        index.parse(text)


def test_a_cut_off_page_never_reads_as_a_shorter_one(tmp_path: Path) -> None:
    text = index.json_page(catalog(tmp_path, 1, 2))
    for end in range(0, len(text) - 1, 37):
        with pytest.raises(PublishError):
            index.parse(text[:end])


def test_files_of_one_version_are_found_however_it_is_written(tmp_path: Path) -> None:
    made = catalog(tmp_path, 1, 2)
    assert made.of("0.5.18+SM120.1") == made.files[:1]
    assert made.find("nothing.whl") is None
    assert replace(made, files=tuple(reversed(made.files))) == made
