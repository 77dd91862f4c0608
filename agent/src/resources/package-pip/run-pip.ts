import { HostFailure } from '../../host/failure.ts';
import { proxyVariables } from '../../host/network/proxy-variables.ts';
import type { CommandResult } from '../../host/processes/run-command.ts';
import type { Machine } from '../provider/provider.ts';
import { runAccountShell } from '../script/account-shell.ts';
import { requirePrerequisites } from '../script/prerequisites.ts';
import { marks } from './environment.ts';
import { type Declared, environmentOf, needsOf, type SeenPipPackage } from './seen.ts';

/**
 * Runs pip in a virtual environment, which it creates if necessary. If pip is killed, it may leave an incomplete
 * package, which pip itself would consider complete. Therefore, `bin` and `lib` are copied beforehand, as hard links,
 * because pip replaces files and never writes into them. The copies also mark an unfinished run, and are restored
 * before the next attempt and after a failure. Each step can be repeated.
 *
 * Arguments: `install`, `uninstall`, or `clear`, which removes the virtual environment; the environment; 1 if only root
 * may have written to it, or an empty string; 1 to install the package again, or an empty string; "." to remove the
 * directory itself, or an empty string; the number of metadata directories or files to remove first; these, below the
 * environment; the names of packages to uninstall. File 3 is a requirements file.
 */
const text = `
set -eu
action=$1 venv=$2 checked=$3 again=$4 own=$5 count=$6
shift 6
partial=$venv/${marks.partial} created=$venv/${marks.created} work=$venv/${marks.work}
pip() {
  "$venv/bin/python3" -I -B -m pip --isolated --no-input --disable-pip-version-check --no-cache-dir \\
    --require-virtualenv --quiet "$@"
}
clear() {
  if [ -f "$partial" ] && [ ! -L "$partial" ]; then
    [ "$(head -c 1 -- "$partial")" != . ] || own=.
    clear_content
  fi
  [ -z "$own" ] || [ ! -d "$venv" ] || rmdir --ignore-fail-on-non-empty -- "$venv"
}
clear_content() {
  for name in bin include lib lib64 share .gitignore pyvenv.cfg "\${created##*/}" "\${created##*/}.new" \\
    "\${work##*/}" "\${work##*/}.new" "\${work##*/}.done"; do
    rm -rf -- "$venv/$name"
  done
  rm -f -- "$partial"
}
create() {
  if [ ! -d "$venv" ]; then
    mkdir -- "$venv" || return 1
    own=.
  elif [ -n "$(ls -A -- "$venv")" ]; then
    echo "ERROR: $venv is not empty" >&2
    return 1
  fi
  printf '%s\\n' "$own" > "$partial" || return 1
  python3 -I -B -m venv "$venv" || return 1
  { printf '%s\\n' "$own"; (cd -- "$venv" && find . -mindepth 1 ! -name '*.pyc'); } > "$created.new" || return 1
  mv -T -- "$created.new" "$created"
  rm -f -- "$partial"
}
expect_own() {
  [ -n "$checked" ] || return 0
  found=$(find "$venv" ! -type l '(' ! -uid 0 ! -uid "$(id -u)" -o -perm /022 ')' -print -quit) || return 1
  [ -n "$found" ] || found=$(find "$venv/lib" -type l -print -quit) || return 1
  [ -z "$found" ] || {
    echo "ERROR: users other than root can change $found; declare the owner of $venv as user" >&2
    return 1
  }
}
entries() {
  (cd -- "$1" && find bin lib '(' -type d -printf 'd %P\\n' ')' -o -printf '%i %P\\n' | LC_ALL=C sort)
}
finish() {
  mv -T -- "$work" "$work.done"
  rm -rf -- "$work.done"
}
recover() {
  rm -rf -- "$work.new" "$work.done"
  if [ ! -d "$work" ] || [ -L "$work" ]; then
    rm -f -- "$work"
    return 0
  fi
  if [ ! -d "$venv/bin" ] || [ ! -d "$venv/lib" ] || [ "$(entries "$work")" != "$(entries "$venv")" ]; then
    rm -rf -- "$venv/bin" "$venv/lib"
    cp -al -- "$work/bin" "$work/lib" "$venv/"
  fi
  finish
}
if [ "$action" = clear ]; then
  [ ! -f "$created" ] || mv -T -- "$created" "$partial"
  clear
  exit 0
fi
[ ! -f "$partial" ] || clear
was=old
if [ ! -d "$venv" ] || [ ! -f "$venv/pyvenv.cfg" ]; then
  [ "$action" = install ] || exit 0
  was=new
  own=
  create || {
    [ ! -f "$partial" ] || clear
    exit 1
  }
fi
expect_own || exit 1
recover
mkdir -- "$work.new"
cp -al -- "$venv/bin" "$venv/lib" "$work.new/"
mv -T -- "$work.new" "$work"
while [ "$count" -gt 0 ]; do
  rm -rf -- "$venv/$1"
  count=$((count - 1))
  shift
done
status=0
if [ "$action" = install ]; then
  if [ -n "$again" ]; then
    pip install --only-binary=:all: --no-warn-script-location --progress-bar=off --force-reinstall --no-deps \\
      -r /proc/self/fd/3 || status=$?
  fi
  [ $status != 0 ] ||
    pip install --only-binary=:all: --no-warn-script-location --progress-bar=off -r /proc/self/fd/3 || status=$?
elif [ $# -gt 0 ]; then
  pip uninstall --yes "$@" || status=$?
fi
if [ $status = 0 ]; then finish; else recover; fi
if [ $status != 0 ] && [ $was = new ]; then
  mv -T -- "$created" "$partial"
  clear
fi
exit $status`;

export interface PipRun {
  action: 'install' | 'uninstall' | 'clear';
  /** Lines of the requirements to install; without them, the package of the resource is installed. */
  lines?: readonly string[];
  /** Version of the package to install; null for the newest version. */
  version?: string | null;
  /** Whether the local part must match as well, so that, for example, `1.0+cu121` is not accepted for `1.0`. */
  isExact?: boolean;
  /** Whether to install the package although this version is installed. */
  again?: boolean;
  /**
   * Whether `clear` also removes the directory of the virtual environment if the agent did not record who created it.
   */
  removesDirectory?: boolean;
  /** Metadata to remove first, below the virtual environment. */
  stale?: readonly string[];
  /** Names of packages to uninstall. */
  names?: readonly string[];
}

/** @throws HostFailure with pip's messages */
export async function runPip(
  resource: Declared,
  run: PipRun,
  { environment }: Pick<SeenPipPackage, 'environment'>,
  machine: Machine,
): Promise<void> {
  const { name, requirements, index_url: index, user } = resource.body;
  const account = await requirePrerequisites(
    needsOf(resource, run.action === 'clear' ? 'partial' : environment),
    machine,
  );
  const isRoot = user == null || account?.uid === 0;
  const requirement = run.version == null ? name : `${name}${run.isExact === true ? '===' : '=='}${run.version}`;
  const lines = run.lines ?? [requirement];
  const timeLimit = machine.limits.packageMs;
  const { stale = [], names = [] } = run;
  const result = await runAccountShell(
    {
      text,
      args: [
        ...[run.action, environmentOf(resource), isRoot ? '1' : '', run.again === true ? '1' : ''],
        ...[run.removesDirectory === true ? '.' : '', String(stale.length), ...stale, ...names],
      ],
      directory: '/',
      environment: { ...proxyVariables(machine.environment), ...settings },
      // Arguments are visible to other users, and the environment to the account's processes.
      secret: `${index == null ? '' : `--index-url ${index}\n`}${lines.join('\n')}\n`,
      timeLimit,
      account,
      printed: (stream, piece) => machine.printed(resource, stream, piece),
    },
    machine,
  );
  // pip replaces directories, so the cached directories are stale.
  machine.walk.forget();
  if (result.timedOut) throw new HostFailure(`pip took longer than ${timeLimit / 1000} s and was stopped`);
  if (result.exitCode !== 0) {
    const what =
      run.action === 'install'
        ? `install ${requirements ?? requirement}`
        : `${run.action} ${names.join(', ').slice(0, 1000) || (requirements ?? name)}`;
    throw new HostFailure(`pip cannot ${what}: ${pipMessage(result, index)}`);
  }
}

const settings = { LC_ALL: 'C.UTF-8', PIP_CONFIG_FILE: '/dev/null', PYTHONDONTWRITEBYTECODE: '1' };

/**
 * Returns the errors of pip, or the last lines of output if it printed none.
 * @param index URL of the index, which must not appear in the result
 */
export function pipMessage(
  { stdout, stderr, exitCode, truncated }: Pick<CommandResult, 'stdout' | 'stderr' | 'exitCode' | 'truncated'>,
  index: string | null | undefined,
): string {
  // In truncated output, a partial URL might not be recognized.
  if (truncated && index != null) return `it exited with ${exitCode}, and its output is too long to show`;
  const linesOf = (output: string) =>
    withoutIndex(output.replaceAll(/ ?\(from -r \/proc\/self\/fd\/3 \(line \d+\)\)/g, ''), index)
      .split('\n')
      .map((line) => line.trim())
      .filter((line) => line !== '');
  const lines = linesOf(stderr);
  const errors = lines.filter((line) => line.startsWith('ERROR: ')).map((line) => line.slice('ERROR: '.length));
  const last = lines.length > 0 ? lines : linesOf(stdout);
  const shown = errors.length > 0 ? errors.slice(0, 6) : last.slice(-6);
  return shown.length === 0 ? `it exited with ${exitCode}` : shown.join(' ').slice(0, 800);
}

/**
 * Replaces all URLs, and all parts of the index's URL that may be secret. Without an index, changes nothing. pip may
 * print parts with different quoting, so this also replaces everything that looks like a path or has a quoted
 * character.
 */
function withoutIndex(output: string, index: string | null | undefined): string {
  const url = index == null ? null : URL.parse(index);
  if (url === null) return output;
  const secrets = [url.username, url.password, ...url.pathname.split('/')]
    .flatMap((part) => [part, decoded(part), encodeURIComponent(part)])
    .filter((part) => part.length > 2 && part !== 'simple')
    .sort((one, other) => other.length - one.length);
  const whole = output.replaceAll(/https?:\/\/[^\s]+/gi, '(URL)');
  return secrets
    .reduce((rest, part) => rest.replaceAll(part, '…'), whole)
    .replaceAll(/\S+/g, (word) => (/[/%]/.test(word) ? '…' : word));
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
