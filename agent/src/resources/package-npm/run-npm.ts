import { HostFailure } from '../../host/failure.ts';
import { proxyVariables } from '../../host/network/proxy-variables.ts';
import type { CommandResult } from '../../host/processes/run-command.ts';
import type { Machine } from '../provider/provider.ts';
import { runAccountShell } from '../script/account-shell.ts';
import { requirePrerequisites } from '../script/prerequisites.ts';
import { type Declared, needsOf, prefixOf } from './seen.ts';

/**
 * Runs npm for one package. If npm is killed, it may leave an incomplete package, which npm itself would consider
 * complete. Therefore, the package and its links in `bin` are copied beforehand, in a directory whose existence also
 * marks an unfinished installation, and restored before the next attempt and after a failure. Each step can be
 * repeated.
 *
 * Arguments: `install`, `uninstall`, or an empty string to only clean up; the prefix; the name; the name with the
 * version; 1 to install the package afresh, or an empty string; directories to remove if they are empty, innermost
 * first.
 */
const text = `
set -eu
action=$1 prefix=$2 name=$3 spec=$4 afresh=$5
shift 5
modules=$prefix/lib/node_modules bin=$prefix/bin
package=$modules/$name
parent=\${package%/*} base=\${package##*/}
work=$parent/.muster-$base
each_link() {
  for link in "$bin"/* "$bin"/.[!.]*; do
    [ -L "$link" ] || continue
    case $(readlink -- "$link") in "../lib/node_modules/$name/"*) "$@" "$link" ;; esac
  done
}
save() { cp -a -- "$1" "$work.new/bin/"; }
recover() {
  rm -rf -- "$work.new" "$work.done"
  [ -d "$work" ] || return 0
  each_link rm -f --
  rm -rf -- "$package" "$parent/.$base-"????????
  [ ! -d "$work/old" ] || cp -a -- "$work/old" "$package"
  [ ! -d "$work/bin" ] || cp -a -- "$work/bin/." "$bin/"
  finish
}
finish() {
  mv -T -- "$work" "$work.done"
  rm -rf -- "$work.done"
}
recover
if [ "$action" != install ] && [ ! -e "$package" ]; then each_link rm -f --; fi
status=0
if [ "$action" = install ] || [ -d "$package" ] && [ -n "$action" ]; then
  mkdir -p -- "$parent" "$bin"
  mkdir -- "$work.new" "$work.new/bin"
  [ ! -d "$package" ] || cp -a -- "$package" "$work.new/old"
  each_link save
  mv -T -- "$work.new" "$work"
  if [ -n "$afresh" ]; then
    each_link rm -f --
    rm -rf -- "$package"
  fi
  npm_config_cache=$(mktemp -d)
  export npm_config_cache
  npm "$action" --global --prefix "$prefix" -- "$spec" || status=$?
  rm -rf -- "$npm_config_cache"
  if [ $status = 0 ]; then finish; else recover; fi
fi
for directory; do
  [ ! -d "$directory" ] || rmdir --ignore-fail-on-non-empty -- "$directory"
done
exit $status`;

export interface NpmRun {
  action: 'install' | 'uninstall' | 'clean up';
  /** Version or range to install; null for the newest version. */
  version?: string | null;
  /** Whether to install the package although this version is installed. */
  afresh?: boolean;
  /** Directories to remove if they are empty, innermost first. */
  directories?: readonly string[];
}

/** @throws HostFailure with npm's messages */
export async function runNpm(resource: Declared, run: NpmRun, machine: Machine): Promise<void> {
  const { name, registry } = resource.body;
  const account = await requirePrerequisites(needsOf(resource), machine);
  const action = run.action === 'clean up' ? '' : run.action;
  const spec = run.version == null ? name : `${name}@${run.version}`;
  const timeLimit = machine.limits.packageMs;
  const result = await runAccountShell(
    {
      text,
      args: [action, prefixOf(resource), name, spec, run.afresh === true ? '1' : '', ...(run.directories ?? [])],
      directory: '/',
      environment: {
        ...proxyVariables(machine.environment),
        ...settings,
        ...(registry == null ? {} : { npm_config_registry: registry }),
      },
      secret: '',
      timeLimit,
      account,
      printed: (stream, piece) => machine.printed(resource, stream, piece),
    },
    machine,
  );
  // npm replaces directories, so the cached directories are stale.
  machine.walk.forget();
  if (result.timedOut) throw new HostFailure(`npm took longer than ${timeLimit / 1000} s and was stopped`);
  if (result.exitCode !== 0) throw new HostFailure(`npm cannot ${run.action} ${spec}: ${npmMessage(result)}`);
}

const settings = {
  npm_config_audit: 'false',
  npm_config_fund: 'false',
  npm_config_loglevel: 'error',
  npm_config_progress: 'false',
  npm_config_update_notifier: 'false',
  LC_ALL: 'C.UTF-8',
};

/** Returns the messages of npm, without the paths of its logs; the last line of output if npm printed none. */
export function npmMessage({ stderr, exitCode }: Pick<CommandResult, 'stderr' | 'exitCode'>): string {
  const lines = stderr.split('\n').map((line) => line.trim());
  const messages = lines.flatMap((line) => {
    const [, message = ''] = /^npm (?:ERR!|error)(?: (.*))?$/.exec(line) ?? [];
    return message.trim() === '' || /complete log of this run|\.log$/.test(message) ? [] : [message.trim()];
  });
  const shown = messages.length > 0 ? messages.slice(0, 6).join(' ') : (lines.findLast((line) => line !== '') ?? '');
  return shown === '' ? `it exited with ${exitCode}` : shown.slice(0, 600);
}
