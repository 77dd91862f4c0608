import type { ResolvedResource } from '@muster/protocol/module';
import { HostFailure } from '../../host/failure.ts';
import { endText } from '../../host/processes/failure-text.ts';
import { runCommand } from '../../host/processes/run-command.ts';
import type { Machine } from './provider.ts';

/**
 * Runs a command that validates new content before the file is replaced.
 * @param command `%` represents the file
 * @param file temporary file next to the one that it will replace
 * @param resource a resource whose body has a `path`
 * @throws HostFailure if the command does not succeed
 */
export async function runValidation(
  command: string,
  file: string,
  resource: ResolvedResource,
  machine: Machine,
): Promise<void> {
  const quoted = `'${file.replaceAll("'", "'\\''")}'`;
  const result = await runCommand(
    {
      program: 'sh',
      args: ['-c', command.replaceAll('%', () => quoted)],
      timeLimit: machine.limits.checkMs,
      outputCap: 4096,
      started: (process) => machine.startedProcess(process),
    },
    machine.clock,
  );
  if (result.exitCode === 0) return;
  const how = result.timedOut ? 'took too long' : endText(result);
  const { path } = resource.body as { path: string };
  // The command can print any line of the file.
  const words = machine.mayContainSecret(path) ? '' : (result.stderr || result.stdout).trim();
  const said = words === '' ? '' : `: ${words}`;
  throw new HostFailure(`the new content of ${path} was refused because \`validate\` ${how}${said}`);
}
