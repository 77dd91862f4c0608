import type { ResolvedResource } from '@muster/protocol/module';
import { HostFailure } from '../../host/failure.ts';
import { setOpenOwnership } from '../../host/files/ownership.ts';
import { type CommandResult, runCommand } from '../../host/processes/run-command.ts';
import { openUnnamed } from '../../host/processes/unnamed-file.ts';
import type { Machine } from '../provider/provider.ts';
import type { ScriptAccount } from '../script/launch.ts';

export type Declared = ResolvedResource<'git'>;

/** Waits until the agent has recorded the process. */
const gate = 'read -r REPLY <&4 || exit 125; unset REPLY; exec 4<&-;';
const ssh =
  'ssh -o BatchMode=yes -o StrictHostKeyChecking=yes -o ConnectTimeout=30 -o ServerAliveInterval=15 -o ServerAliveCountMax=4';
/** ssh closes inherited files, so it opens the key through its parent process, which keeps the key open. */
const sshWithKey = `GIT_SSH_COMMAND="${ssh} -o IdentitiesOnly=yes -i /proc/$$/fd/3"`;
const sshWithoutKey = `GIT_SSH_COMMAND="${ssh}"`;

const settings: readonly (readonly [string, string])[] = [
  ['protocol.allow', 'never'],
  ['protocol.https.allow', 'always'],
  ['protocol.ssh.allow', 'always'],
  // Refused for submodules.
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

/** Environment variables in which Git looks up a proxy. */
const proxyNames = ['http_proxy', 'https_proxy', 'HTTPS_PROXY', 'all_proxy', 'ALL_PROXY', 'no_proxy', 'NO_PROXY'];

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
 * Runs shell code that calls git, as the account. The key is in an unnamed file that only the account can open, so that
 * it never appears in the arguments or the environment of a process and leaves no file behind.
 */
export async function runGit(resource: Declared, run: GitRun, machine: Machine): Promise<CommandResult> {
  const { key } = resource.body;
  const { account } = run;
  const file = openUnnamed(key == null ? '' : key.endsWith('\n') ? key : `${key}\n`);
  try {
    if (account !== null) setOpenOwnership(file.fd, { uid: account.uid, gid: account.gid, mode: 0o600 });
    // The shell stays the parent of git and keeps the key open. Starting a program takes longer than most git queries,
    // so a second shell is started only if the account changes.
    const text = `cd -- "$1" || exit 1; shift; export ${key == null ? sshWithoutKey : sshWithKey}\n${run.text}`;
    const args =
      account === null
        ? [`${gate}\n${text}`]
        : [
            ...[`${gate} exec "$@"`, 'sh', account.setpriv, '--reuid', `${account.uid}`, '--regid', `${account.gid}`],
            ...['--init-groups', '--', '/bin/sh', '-c', text],
          ];
    return await runCommand(
      {
        program: '/bin/sh',
        args: ['-c', ...args, 'sh', run.directory, ...run.args],
        environment: { ...environmentOf(machine), ...identityOf(account) },
        scriptFd: file.fd,
        timeLimit: run.timeLimit,
        outputCap: 64 * 1024,
        started: (process) => machine.startedProcess(process),
      },
      machine.clock,
    );
  } finally {
    file.close();
  }
}

const identityOf = (account: ScriptAccount | null): Record<string, string> =>
  account === null ? {} : { HOME: account.home, USER: account.name, LOGNAME: account.name };

function environmentOf({ environment }: Machine): Record<string, string> {
  const proxies = proxyNames.flatMap((name) => {
    const value = environment[name];
    return value === undefined ? [] : [[name, value] as const];
  });
  const { SSL_CERT_FILE: authorities } = environment;
  return {
    ...settingVariables,
    ...Object.fromEntries(proxies),
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
  return new HostFailure(`cannot ${doing}: ${words === '' ? `git ended with ${exitCode}` : words}${hint}`);
}
