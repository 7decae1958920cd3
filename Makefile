# SPDX-License-Identifier: BSD-3-Clause
# The front door: each target calls CMake or a script of ci/, where the work is.
PREFIX ?= /usr/local
SITE ?=
SITES ?=
OPTIONS ?=
BUILD ?= build
export BUILD_DIR := $(abspath $(BUILD))

.DEFAULT_GOAL := help
.PHONY: help demo test lint docs bench install uninstall dist clean

help: ## list the targets
	@echo "xccl runs the MPI collectives of unmodified GPU programs at the speed of the vendor's library, and often faster."
	@echo 'Usage: make <target>'
	@sed -n 's/^\([a-z]*\):.*## /\1:/p' Makefile | while IFS=: read -r name text; do \
	    printf '  %-9s %s\n' "$$name" "$$text"; done
	@echo 'Variables: PREFIX=$(PREFIX), SITE=$(SITE) (install, for one site only), SITES=$(SITES) (a folder with a site of your own), OPTIONS=$(OPTIONS) (install, for CMake), BUILD=$(BUILD) (where everything is built)'

demo: ## build, install into a local prefix, run a benchmark on 4 ranks
	@ci/bootstrap build
	@ci/demo

test: ## build twice (release, sanitizers) and run the tests
	@ci/bootstrap build test
	@ci/test

lint: ## check format, static analysis, layering, shell and Python
	@ci/bootstrap build lint
	@ci/lint

docs: ## build the documentation into build/site, and open every page in a browser
	@ci/bootstrap docs
	@ci/docs

bench: ## measure what the library costs, as ratios within one run
	@ci/bootstrap build test
	@ci/bench

install: ## build and install into PREFIX
	@ci/install-tree --check --site "$(SITE)" --sites "$(SITES)" "$(PREFIX)"
	@ci/bootstrap --check build
	@ci/build "$(BUILD)/install" -DCMAKE_BUILD_TYPE=RelWithDebInfo "-DCMAKE_INSTALL_PREFIX=$(abspath $(PREFIX))" \
	    -DCMAKE_INSTALL_LIBDIR=lib $(OPTIONS)
	@umask 022 && cmake --install "$(BUILD)/install" --prefix "$(abspath $(PREFIX))"
	@ci/install-tree --site "$(SITE)" --sites "$(SITES)" "$(PREFIX)"

uninstall: ## remove from PREFIX what make install put there
	@libxccl/cmake/manifest.sh --remove "$(abspath $(DESTDIR)$(PREFIX))"

dist: ## make dist/xccl-<version>.tar.gz of the last commit; it builds without git
	@ci/dist

clean: ## remove what was built (the Python environment stays)
	rm -rf "$(BUILD)" dist
