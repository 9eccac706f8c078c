"""Checks manifests against the schemas of Kubernetes and Argo Workflows: manifests.py FILE..."""

import sys
from pathlib import Path

import kubernetes_validate
import yaml
from hera.workflows.models import Workflow


def dropped(given, kept, at=""):
    """The fields of given that are not in kept: the model of a workflow ignores what it does not know."""
    if isinstance(given, dict):
        for key, value in given.items():
            if not isinstance(kept, dict) or key not in kept:
                yield f"{at}.{key}"
            else:
                yield from dropped(value, kept[key], f"{at}.{key}")
    elif isinstance(given, list):
        for i, value in enumerate(given):
            yield from dropped(value, kept[i], f"{at}[{i}]")


def check(manifest):
    if manifest["kind"] != "Workflow":
        kubernetes_validate.validate(manifest, "1.29", strict=True)
        return
    kept = Workflow.model_validate(manifest).model_dump(mode="json", by_alias=True, exclude_unset=True)
    if unknown := list(dropped(manifest, kept)):
        raise SystemExit(f"a workflow has no {', '.join(unknown)}")


for path in sys.argv[1:]:
    check(yaml.safe_load(Path(path).read_text()))
print(len(sys.argv) - 1, "valid")
