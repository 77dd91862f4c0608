import type { ResolvedResource } from '@muster/protocol/module';
import { HostFailure } from '../../host/failure.ts';
import { proxyVariables } from '../../host/network/proxy-variables.ts';
import type { CommandResult } from '../../host/processes/run-command.ts';
import type { Machine } from '../provider/provider.ts';
import { runAccountShell } from '../script/account-shell.ts';
import type { ScriptAccount } from '../script/launch.ts';

export type Declared = ResolvedResource<'git'>;

const ssh =
  'ssh -o BatchMode=yes -o StrictHostKeyChecking=yes -o ConnectTimeout=30 -o ServerAliveInterval=15 -o ServerAliveCountMax=4';
/** ssh closes inherited files, so it opens the key through its parent process, which keeps the key open. */
const sshWithKey = `GIT_SSH_COMMAND="${ssh} -o IdentitiesOnly=yes -i /proc/$$/fd/3"`;
const sshWithoutKey = `GIT_SSH_COMMAND="${ssh}"`;

const settings: readonly (readonly [string, string])[] = [
  ['protocol.allow', 'never'],
  ['protocol.https.allow', 'always'],
  ['protocol.ssh.allow', 'always'],
  // Allows the `file` protocol only for the repository itself, not for submodules.
  ['protocol.file.allow', 'user'],
  ['core.hooksPath', '/dev/null'],
  ['core.fsmonitor', 'false'],
  ['advice.detachedHead', 'false'],
  ['gc.auto', '0'],
  ['http.lowSpeedLimit', '1'],
  ['http.lowSpeedTime', '60'],
];
const settingVariables = Object.fromEntries([
  ['GIT_CONFIG_COUNT', String(settings.length)],
  ...settings.flatMap(([key, value], i) => [
    [`GIT_CONFIG_KEY_${i}`, key],
    [`GIT_CONFIG_VALUE_${i}`, value],
  ]),
]);

export interface GitRun {
  /** Shell code that calls git. Its arguments are `$1` and so on. */
  text: string;
  args: readonly string[];
  directory: string;
  /** Milliseconds. */
  timeLimit: number;
  /** Null to run as the agent's own account. */
  account: ScriptAccount | null;
}

/**
 * Runs shell code that calls git, as the given account. The shell remains the parent process of git and keeps the key
 * file open.
 */
export function runGit(resource: Declared, run: GitRun, machine: Machine): Promise<CommandResult> {
  const { key } = resource.body;
  return runAccountShell(
    {
      ...run,
      text: `export ${key == null ? sshWithoutKey : sshWithKey}\n${run.text}`,
      environment: environmentOf(machine),
      secret: key == null ? '' : key.endsWith('\n') ? key : `${key}\n`,
    },
    machine,
  );
}

function environmentOf({ environment }: Machine): Record<string, string> {
  const { SSL_CERT_FILE: authorities } = environment;
  return {
    ...settingVariables,
    ...proxyVariables(environment),
    ...(authorities === undefined ? {} : { GIT_SSL_CAINFO: authorities }),
    ...{ GIT_TERMINAL_PROMPT: '0', GIT_ASKPASS: '/bin/false', GIT_OPTIONAL_LOCKS: '0', LC_ALL: 'C.UTF-8' },
  };
}

/** @param doing completes "cannot …" */
export function gitFailure(doing: string, { stderr, timedOut, exitCode }: CommandResult): HostFailure {
  if (timedOut) return new HostFailure(`cannot ${doing}: git took too long and was stopped`);
  const lines = stderr.split('\n').flatMap((line) => (line.trim() === '' ? [] : [line.trim()]));
  const hint = lines.some((line) => line.startsWith('Host key verification failed'))
    ? ' Declare the key of the host with `known-host`.'
    : lines.some((line) => line.includes('dubious ownership'))
      ? ' Declare the owner of the working copy as `user`.'
      : '';
  const words = lines
    .filter((line) => !line.startsWith('@@'))
    .slice(0, 4)
    .join(' ')
    .slice(0, 600);
  return new HostFailure(`cannot ${doing}: ${words === '' ? `git exited with ${exitCode}` : words}${hint}`);
}
