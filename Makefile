# Every target is one line of intent; whatever needs more than three lines lives in tools/.
.DEFAULT_GOAL := help
.PHONY: help install pythons pipeline report run test test-fast verify fix sim chaos kafka grpc interop bench image release e2e gen

PYTHON ?= python3
PYTHONS ?= python3.12 python3.13
BIN := .venv/bin
PYTEST := $(BIN)/python -m pytest -n auto --dist worksteal --durations=10
INSTALLED := .venv/installed
PIPELINE := .venv/pipeline
# What the simulator imports.
SIMULATED := crc32c|google-crc32c|immutables|numpy|protobuf
# A seed replays one run; a range of seeds is explored without stopping for each.
SEEDS ?= 200
DURATION_S ?= 60
CONTROLLERS ?= 3
CHAOS_KINDS ?= all
OF ?= quorate
TAG ?= quorate$(if $(filter pipeline,$(OF)),-pipeline):dev
IMAGE ?= localhost/quorate:e2e
IMAGES ?= quorate pipeline
RANGE = $(if $(SEED),$(SEED)-$(SEED),1-$(SEEDS))

help:  ## list the targets
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z0-9-]+):.*## */\1\t/' | expand -t 11

install: $(INSTALLED)  ## make .venv with the quorate command in it

$(INSTALLED): requirements.lock pyproject.toml
	$(PYTHON) -m venv .venv && $(BIN)/python -m pip install --quiet --no-deps --require-hashes --requirement requirements.lock
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	$(BIN)/python -m pip --quiet check
	touch $@

pythons:  ## for tests that compare versions of Python: an environment for each of PYTHONS='python3.12 python3.13'
	$(foreach it,$(PYTHONS),$(it) -m venv .venv-$(notdir $(it)) && awk '/^[^ ]/ { kept = /^($(SIMULATED))==/ } kept' requirements.lock | .venv-$(notdir $(it))/bin/python -m pip install --quiet --no-compile --no-deps --require-hashes --requirement /dev/stdin &&) true

pipeline: $(PIPELINE)  ## add Spark to .venv, for quorate pipeline and its tests; needs Java 17

$(PIPELINE): requirements-pipeline.lock $(INSTALLED)
	$(BIN)/python -m pip install --quiet --no-deps --require-hashes --requirement requirements-pipeline.lock
	touch $@

report: $(PIPELINE)  ## generate the log of two days and write build/report.html about it
	test -e build/log || $(BIN)/quorate generate-log build/log --days 2 --brokers 12 --topics 40 --records 20000
	$(BIN)/quorate pipeline report --path build/log --html build/report.html

run: $(INSTALLED)  ## start a local quorum of three controllers, until Ctrl-C
	$(BIN)/quorate up $(ARGS)

test: $(INSTALLED) $(if $(CI),$(PIPELINE))  ## run all tests on all cores and name the slowest; ARGS= goes to pytest
	$(PYTEST) $(ARGS)

test-fast: $(INSTALLED)  ## run what a change needs first: unit tests, transcripts and decisions
	$(PYTEST) tests/unit tests/simulation/test_transcripts.py tests/simulation/test_deciding.py $(ARGS)

verify: $(INSTALLED)  ## check everything and write nothing
	$(BIN)/python tools/verify.py
	$(MAKE) --no-print-directory sim

fix: $(INSTALLED)  ## repair what the linter and the formatter can
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

sim: $(INSTALLED)  ## simulate seeds 1 to SEEDS=200, others FOR=10m, or replay SEED=n
	$(BIN)/quorate simulate $(if $(FOR),--for $(FOR),--seeds $(RANGE))

chaos: $(INSTALLED)  ## harm CONTROLLERS=3 real processes for DURATION_S=60, as root; CHAOS_SEED=n to draw the same, TRANSPORT=grpcio
	GRPC_VERBOSITY=none $(BIN)/python -m pytest -s tests/chaos/test_chaos.py --chaos-seconds=$(DURATION_S) --chaos-controllers=$(CONTROLLERS) $(if $(TRANSPORT),--transport=$(TRANSPORT)) $(ARGS) $(if $(CHAOS_SEED),--chaos-seed=$(CHAOS_SEED)) --chaos-kinds=$(CHAOS_KINDS)

kafka: $(INSTALLED)  ## let Maven copy stock Kafka's jars, for interop and the tests that need them
	$(BIN)/python -m tools.fetch_kafka

grpc: $(INSTALLED)  ## build the programs of others that tests/conformance talks with; needs Go 1.26
	$(BIN)/python -m tools.fetch_grpc

interop: kafka  ## read our files with stock Kafka, and its files with ours; ARGS= goes to pytest
	$(BIN)/python -m pytest tests/interop $(ARGS)

bench: $(INSTALLED)  ## measure beside etcd, PySyncObj and stock Kafka, where they are; ARGS=--help
	-$(BIN)/python -m pip install --quiet --require-hashes --requirement tests/bench/requirements.txt
	$(BIN)/python -m tests.bench $(ARGS)

image:  ## build the container image TAG=quorate:dev with docker, podman or buildah; OF=pipeline: the one with Spark
	$(PYTHON) tools/build_image.py --of $(OF) --tag $(TAG)

release: $(INSTALLED)  ## build a release of the last commit into dist/; IMAGES= without images, ARGS=--draft to try
	$(BIN)/python -m tools.build_release --images '$(IMAGES)' $(ARGS)

e2e: $(INSTALLED)  ## install the chart with IMAGE= on the cluster of your kubeconfig; LOAD='kind load docker-image'
	$(BIN)/python -m pytest tests/e2e --e2e --log-cli-level=INFO --image=$(IMAGE) --load-image="$(LOAD)" --next-image="$(NEXT)" --nodes="$(NODES)" --jaeger="$(JAEGER)" $(ARGS)

gen: $(INSTALLED)  ## generate the protobuf code, the diagram of roles and the table of values
	$(BIN)/python tools/gen_proto.py
	$(BIN)/python tools/draw_state_diagram.py
	$(BIN)/python tools/chart_values.py
