#!/bin/sh
# Installs the Muster agent on this machine and connects it to its orchestrator, which serves this script:
#
#   MUSTER_TOKEN=TOKEN sh agent.sh --from https://HOST:4748 [--pin PIN] --to HOST:4747 --key HEX [--wait no]
#
# `muster agents enroll` prints the whole line. On Debian and its derivatives, the script installs the packages muster and
# muster-agent; on other systems, the program as /usr/local/bin/muster and a systemd unit. The script is the same for all
# machines: only the arguments differ. All code is in functions, so an incomplete download does nothing.
set -eu

# The build fills in the version, and the SHA-256 of each file that can be downloaded.
version='@VERSION@'
sums='@SUMS@'

say() { printf 'muster: %s\n' "$*"; }
fail() {
  printf 'muster: %s\n' "$*" >&2
  exit 1
}
has() { command -v "$1" > /dev/null 2>&1; }

# Runs a command as root: directly, or with sudo or doas, which may ask for a password on the terminal.
as_root() {
  if [ "$(id -u)" = 0 ]; then
    "$@"
  elif has sudo; then
    sudo -- "$@"
  elif has doas; then
    doas -- "$@"
  else
    fail 'this script requires root: run it as root, or install sudo'
  fi
}

# Prints the agent's log since its last start.
log() {
  as_root journalctl --quiet --output cat "_SYSTEMD_INVOCATION_ID=$(systemctl show --property InvocationID --value muster-agent)" 2> /dev/null || true
}

sum_of() {
  printf '%s\n' "$sums" | while read -r sum name; do
    if [ "$name" = "$1" ]; then printf '%s' "$sum"; fi
  done
}

# Prints the name of the file to download that begins with $1 and ends with $2, or nothing if no such file exists.
named() {
  printf '%s\n' "$sums" | while read -r _ name; do
    case $name in "$1"*"$2") printf '%s' "$name" ;; esac
  done
}

# Downloads $1 from the orchestrator into $2, with one attempt. The caller verifies the file with the checksums of this
# script, which was itself downloaded over a trusted connection.
fetch_once() {
  if has curl; then
    if [ -n "$pin" ]; then
      curl -fsSk --pinnedpubkey "$pin" --connect-timeout 20 -o "$2" "$from/install/$1"
    else
      curl -fsS --connect-timeout 20 -o "$2" "$from/install/$1"
    fi
  elif [ -n "$pin" ]; then
    wget -q --no-check-certificate -O "$2" "$from/install/$1"
  else
    wget -q -O "$2" "$from/install/$1"
  fi
}

# Retries, because the orchestrator rejects some downloads when many machines install at the same time.
fetch() {
  attempt=1
  until fetch_once "$1" "$2"; do
    [ "$attempt" -lt 20 ] || fail "failed to download $1 from $from"
    sleep $((attempt < 5 ? attempt : 5))
    attempt=$((attempt + 1))
  done
  expected=$(sum_of "$1")
  found=$(sha256sum "$2" | cut -d ' ' -f 1)
  if [ -z "$expected" ] || [ "$expected" != "$found" ]; then
    fail "$1 from $from has a wrong checksum (SHA-256 $found, expected $expected)"
  fi
}

# Retries while another program holds dpkg's lock.
install_packages() {
  attempt=1
  until as_root env DEBIAN_FRONTEND=noninteractive dpkg --force-confold -i "$@" > "$work/dpkg.log" 2>&1; do
    if ! grep -q 'lock' "$work/dpkg.log" || [ "$attempt" -ge 60 ]; then
      cat "$work/dpkg.log" >&2
      fail 'failed to install the packages'
    fi
    [ "$attempt" -gt 1 ] || say 'another program is installing packages; waiting until it has finished'
    sleep 5
    attempt=$((attempt + 1))
  done
}

install_by_hand() {
  fetch muster "$work/muster"
  fetch muster-agent.service "$work/packaged.service"
  sed 's|/usr/bin/muster|/usr/local/bin/muster|' "$work/packaged.service" > "$work/muster-agent.service"
  chmod 755 "$work/muster"
  "$work/muster" --version > /dev/null || fail 'the program does not run on this system; it requires glibc 2.28 or newer'
  # Replaces the program with a rename, because a running program cannot be overwritten.
  as_root mkdir -p /usr/local/bin /etc/muster
  as_root cp "$work/muster" /usr/local/bin/.muster.new
  as_root chmod 755 /usr/local/bin/.muster.new
  as_root mv -f /usr/local/bin/.muster.new /usr/local/bin/muster
  as_root cp "$work/muster-agent.service" /etc/systemd/system/muster-agent.service
  as_root chmod 644 /etc/systemd/system/muster-agent.service
  [ -e /etc/muster/agent.yml ] || printf '# Configuration of the Muster agent; see docs/operations.md.\n' | as_root tee /etc/muster/agent.yml > /dev/null
  as_root systemctl daemon-reload
  say 'to uninstall: systemctl disable --now muster-agent; rm -rf /usr/local/bin/muster /etc/systemd/system/muster-agent.service /etc/muster /var/lib/muster-agent'
}

# Restores the connection to the former orchestrator if the agent could not connect to the new one.
go_back() {
  [ -n "$former" ] || return 0
  as_root systemctl stop muster-agent || true
  as_root mv -f "$former" "$known"
  as_root systemctl start muster-agent || true
  say 'the agent is running again with its former orchestrator and unchanged settings' >&2
}

forget_former() {
  [ -z "$former" ] || as_root rm -f "$former"
  former=''
}

leave() {
  go_back
  rm -rf "$work"
}

usage() {
  fail 'usage: MUSTER_TOKEN=TOKEN sh agent.sh --from URL [--pin PIN] --to HOST:PORT --key HEX [--wait no]; "muster agents enroll" prints the line'
}

main() {
  token=${MUSTER_TOKEN:-}
  # Child processes do not need the token.
  unset MUSTER_TOKEN
  from='' pin='' to='' key='' wait=yes
  while [ $# -gt 0 ]; do
    [ $# -ge 2 ] || usage
    case $1 in
      --from) from=$2 ;;
      --pin) pin=$2 ;;
      --to) to=$2 ;;
      --key) key=$2 ;;
      # no: does not wait, since an operator must approve the agent first.
      --wait) wait=$2 ;;
      *) usage ;;
    esac
    shift 2
  done
  case $from in https://?* | http://?*) ;; *) usage ;; esac
  if [ -z "$to" ] || [ -z "$key" ] || [ -z "$token" ]; then usage; fi

  [ "$(uname -s)" = Linux ] || fail "there is no agent for $(uname -s)"
  case $(uname -m) in
    x86_64 | amd64) architecture=amd64 ;;
    *) fail "there is no agent for $(uname -m) processors" ;;
  esac
  [ -d /run/systemd/system ] || fail 'this machine does not run systemd; see docs/operations.md for how to run the agent without it'
  has curl || has wget || fail 'this script requires curl or wget'
  has sha256sum || fail 'this script requires sha256sum'
  as_root true || fail 'this script requires root'

  work=$(mktemp -d)
  former='' known=/var/lib/muster-agent/orchestrator.json
  trap leave EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM
  umask 022
  chmod 755 "$work"

  program=$(named muster_ "_$architecture.deb")
  agent=$(named muster-agent_ .deb)
  if has dpkg && [ -n "$program" ] && [ -n "$agent" ]; then
    say "installing the packages muster and muster-agent $version"
    fetch "$program" "$work/$program"
    fetch "$agent" "$work/$agent"
    install_packages "$work/$program" "$work/$agent"
    muster=/usr/bin/muster
  elif [ -n "$(sum_of muster)" ]; then
    say "installing the program muster $version"
    install_by_hand
    muster=/usr/local/bin/muster
  else
    fail 'this orchestrator has no agent program for this machine'
  fi

  # A running agent would overwrite the new settings.
  as_root systemctl stop muster-agent
  if as_root test -f "$known"; then
    as_root cp -p "$known" "$known.former"
    former=$known.former
  fi
  printf '%s\n' "$token" | as_root "$muster" agent connect "$to" --orchestrator-key "$key" --token - --save
  as_root systemctl enable --quiet muster-agent
  as_root systemctl restart muster-agent

  if [ "$wait" = no ]; then
    forget_former
    say 'the agent is running and waits for approval'
    return
  fi
  # The agent deletes the token after the orchestrator has accepted it.
  attempt=0
  until as_root grep -q '"token":null' /var/lib/muster-agent/orchestrator.json; do
    attempt=$((attempt + 1))
    if log | grep -q 'code=token_invalid'; then
      fail 'the orchestrator refused the token, which is valid once and for a limited time. Print a new command on the orchestrator with: muster agents enroll'
    fi
    if [ "$attempt" -gt 60 ]; then
      log | grep 'not connected' | tail -n 1 >&2
      fail "the agent is running, but is not connected to $to yet. Check that this machine can reach that port. The agent keeps retrying; see: journalctl -u muster-agent"
    fi
    sleep 1
  done
  forget_former
  say 'the agent is connected'
}

main "$@"
