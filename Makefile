# Every target can be repeated, and resumed after an interruption.
.DEFAULT_GOAL := help
.PHONY: help packages run stop server stock debug asan deploy check lint test test-debug test-asan test-bench test-package test-group guest-tests upstream-tests \
        ablation install package image dist patch-edit patch-export bench aio-bench drop-bench replica-bench flush-simulation power-cuts clean clean-source as-root
MAKEFLAGS += --no-print-directory

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 24

packages: ## install the Debian packages that are missing
	@tools/install-packages

run: PACKAGES = build sysbench
run: server ## build, start a server below var/, run two loads and compare them, say how to connect
	@tools/server.py run

stop: ## stop that server
	@tools/server.py stop

# One recipe for all builds. The target is the preset, except server: release.
server: PRESET = release
PACKAGES = build
stock debug asan deploy: PRESET = $@
server stock debug asan deploy:
	@tools/install-packages $(PACKAGES)
	@tools/build.py $(PRESET)
server: ## build the fork
stock: ## build the unmodified base with the same flags
debug: ## build the fork with InnoDB's assertions and debug-only tests
asan: ## build the fork with AddressSanitizer
deploy: ## build the fork as a production server ships

check: packages ## lint and policy tests: no server, below two minutes; the first time twice that
	@tools/runtests.py check

lint: packages ## the lints of check alone
	@tools/runtests.py check --only '^lint'

test: packages ## everything that CI runs
	@tools/runtests.py all

test-debug: debug stock ## our suites, the upstream list and the server tests of pages on the debug build
	@tools/runtests.py debug

test-bench: server stock ## all of the benchmarks' tests on servers
	@tools/runtests.py bench

test-asan: asan stock ## our suites and the server tests of pages on the build with AddressSanitizer
	@tools/runtests.py asan

test-package: PACKAGES = build package debootstrap
test-package: as-root deploy stock ## the packages in fresh roots of Debian 12 and 13, half an hour; needs root; not in CI
	@tools/runtests.py package

test-group: as-root server stock ## Group Replication of three servers, of stock and of the fork: ten minutes; needs root; not in CI
	@tools/build.py release group_replication
	@tools/build.py stock group_replication
	@python3 -m unittest -v tests.server.test_group_replication

guest-tests: PACKAGES = build debootstrap
guest-tests: as-root server ## NVMe that writes pages whole, sectors of 4 KiB: in guests of QEMU; needs root; not in CI
	@tests/guest/guest.py

upstream-tests: server stock ## upstream's suites of InnoDB, sys_vars and main, and what differs from stock: hours
	@tools/upstream_tests.py

bench: PLAN = bench/plans/quick.toml
bench: packages ## run a plan of benchmarks, 10 minutes, or PLAN=bench/plans/...; BENCH_OPTIONS= are run.py's
	@bench/run.py show $(PLAN) > /dev/null
	@tools/build.py policy powercut_fs timed_disk
	@$(MAKE) --no-print-directory server stock
	@bench/run.py run $(PLAN) $(BENCH_OPTIONS)

aio-bench: server ## cost of one asynchronous I/O, by depth of the array
	@tools/aio_bench.py

drop-bench: server ## time of DROP TABLE of 8 GiB, grown by inserts and preallocated
	@tools/drop_bench.py

replica-bench: PACKAGES = build sysbench
replica-bench: as-root server stock ## how fast a replica on a slow device applies transactions: half an hour; needs root
	@tools/replica_bench.py

ablation: ## take out each rule of ahead flushing, one at a time: a unit test has to fail; half an hour
	@tools/install-packages build test
	@tools/ablation.py

flush-simulation: ## ahead flushing on simulated devices: figures and a plot
	@tools/install-packages build test
	@tools/build.py policy flush_simulate
	@tools/flush_simulation.py

power-cuts: CUTS = 10
power-cuts: PACKAGES = build test
power-cuts: as-root server ## cut a server's power in the middle of its writes, CUTS=10 times in each configuration; needs root
	@tools/build.py policy powercut_fs
	@powercut/powercut.py run --cuts $(CUTS)

# Checked before a build of half an hour begins.
as-root:
	@[ "$$(id -u)" = 0 ] || { echo "spillway: error: this target needs root: it mounts file systems" >&2; exit 1; }

install: deploy ## install the deploy build; DESTDIR= and PREFIX= say where
	@DESTDIR="$(DESTDIR)" cmake --install build/fork/deploy $(if $(PREFIX),--prefix "$(PREFIX)")

package: PACKAGES = build package
package: deploy ## pack the deploy build: a tarball and Debian packages in build/package/; PACKAGE_OPTIONS= are package.py's
	@tools/package.py $(PACKAGE_OPTIONS)

image: package ## build the container image with podman or buildah
	@packaging/container/build

dist: ## pack the complete source of a release, with the base: build/dist/; DIST_OPTIONS= are dist.py's
	@tools/dist.py $(DIST_OPTIONS)

patch-edit: ## a git repository, build/patch-edit, with one commit per patch
	@tools/upstream.py tree stock && tools/patchqueue.py edit $(FILES)

patch-export: ## write its commits back to patches/
	@tools/patchqueue.py export

clean: ## remove build/: what was built, results of benchmarks; var/ stays
	@tools/clean.py

clean-source: ## remove the source trees; the next build makes them anew
	@tools/clean.py --sources
