# What the scripts share. Sourced, from the top of the checkout; bash, `set -euo pipefail`.

say() { printf '== %s\n' "$*"; }

fail() {
  printf '%s: %s\n' "${0##*/}" "$*" >&2
  exit 1
}

need_swift() {
  command -v swift >/dev/null ||
    fail "there is no 'swift' on PATH: install the Swift 6.3 toolchain from swift.org, put its usr/bin on PATH and run this again."
}

# need_packages NAME...: installs the Debian packages. Called with those that are missing only; with none it does nothing.
need_packages() {
  [ $# -gt 0 ] || return 0
  command -v apt-get >/dev/null ||
    fail "missing: $*. This is no Debian or Ubuntu: install what they stand for by your own package manager and run this again."
  [ "$(id -u)" = 0 ] ||
    fail "missing: $*. Run 'sudo apt-get update && sudo apt-get install -y $*', then this again."
  say "installing $* (apt-get)"
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null ||
    fail "apt-get could not install $*: its own words stand above."
}

# What a build needs beside the toolchain, one package a line, those that are missing only.
missing_build_packages() {
  command -v pkg-config >/dev/null || echo pkg-config
  # curl-config tells without pkg-config; the header is what the build reads.
  if ! command -v pkg-config >/dev/null || ! pkg-config --exists libcurl; then
    echo libcurl4-openssl-dev
  fi
}

need_libcurl() {
  pkg-config --atleast-version=7.85.0 libcurl ||
    fail "libcurl $(pkg-config --modversion libcurl) is too old: 7.85.0 is the least it builds with."
}

# A python3 that can make virtual environments with pip in them.
real_server_python() {
  local python
  for python in python3 /usr/bin/python3; do
    if command -v "$python" >/dev/null && "$python" -c 'import ensurepip, sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then
      command -v "$python"
      return 0
    fi
  done
  return 1
}

missing_test_packages() {
  real_server_python >/dev/null || echo python3-venv
  command -v openssl >/dev/null || echo openssl
  # The transport's TLS tests. Debian keeps it out of the PATH of who is not root.
  PATH=$PATH:/usr/sbin command -v nginx >/dev/null || echo nginx-light
}

# So many tests at once, where the runner would start all: a test with a deadline then measures itself, and not the
# hundreds that stand in line with it.
export SWT_EXPERIMENTAL_MAXIMUM_PARALLELIZATION_WIDTH=${SWT_EXPERIMENTAL_MAXIMUM_PARALLELIZATION_WIDTH:-8}

# run_tests OPTIONS...: runs the built tests in two runs, each with the runner's own closing lines.
#
# Suites over sockets have deadlines of parts of a second. They go first and alone: beside the suites that keep every
# processor busy for a minute they would measure those.
run_tests() {
  local sockets='CurlSSETransportTests|ReplayServerTests|SubscribeTests|TranscriptTests|DocumentationTests|RealServerTests'
  swift test --skip-build "$@" --filter "$sockets"
  swift test --skip-build "$@" --skip "$sockets"
}
