# Installs missing packages and finds Node. start.sh and test.sh source this file in the repository's root. Both must work on
# a fresh clone with any npm, so this file is plain sh and needs no package.
# Sets `node`: the Node 24 for all programs.

stamp=node_modules/.muster-stamp

# Prints PATH without the folders that npm puts first: `npm ci` replaces the `node` in node_modules/.bin while it runs.
path_without_packages() {
  old_ifs=$IFS
  IFS=:
  kept=
  for folder in $PATH; do
    case $folder in
      */node_modules/.bin | */node-gyp-bin) ;;
      *) kept=${kept:+$kept:}$folder ;;
    esac
  done
  IFS=$old_ifs
  printf '%s' "$kept"
}

install_packages() {
  lock=$(cksum < package-lock.json)
  [ "$(cat "$stamp" 2> /dev/null)" = "$lock" ] && return 0
  # A linked folder belongs to another clone, which `npm ci` would change.
  [ -L node_modules ] && return 0
  # The packages were installed without this script, after the last change of the lock file.
  if [ ! -e "$stamp" ] && [ -n "$(find node_modules/.package-lock.json -newer package-lock.json 2> /dev/null)" ]; then
    printf '%s\n' "$lock" > "$stamp"
    return 0
  fi
  printf 'Installing packages into node_modules (npm ci, only when package-lock.json changes) ... '
  began=$(date +%s)
  if ! output=$(PATH=$(path_without_packages) npm ci --include=dev --include=optional --no-audit --no-fund --loglevel=error 2>&1); then
    printf 'failed.\n%s\n\n' "$output" >&2
    echo 'npm failed to install the packages. Check that this machine can reach the registry: npm config get registry' >&2
    return 1
  fi
  printf '%s\n' "$lock" > "$stamp"
  echo "done in $(($(date +%s) - began)) s."
}

# Uses the packaged Node if it runs on this platform, otherwise the machine's Node if it is new enough.
find_node() {
  for node in "$PWD/node_modules/.bin/node" "$(PATH=$(path_without_packages) command -v node)"; do
    major=$("$node" -p 'parseInt(process.versions.node)' 2> /dev/null) || continue
    [ "$major" -ge 24 ] && return 0
  done
  echo "Muster requires Node 24 or newer, and its packaged Node does not run on this machine ($(uname -s) $(uname -m))." >&2
  echo 'Install Node from https://nodejs.org and try again.' >&2
  return 1
}

install_packages && find_node || exit 1
