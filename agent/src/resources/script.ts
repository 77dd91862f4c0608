import type { ResolvedResource } from '@muster/protocol/module';
import { HostFailure } from '../host/failure.ts';
import { type Command, type CommandResult, runCommand } from '../host/processes/run-command.ts';
import { openUnnamed } from '../host/processes/unnamed-file.ts';
import { defineProvider } from './provider/define-provider.ts';
import { whyNotRun } from './provider/foreign.ts';
import { type Difference, type Machine, nothing, type Outcome } from './provider/provider.ts';

export interface SeenScript {
  /** Exit code of `check`, or null if `check` did not run. */
  checkExit: number | null;
}

/** Record of a script that ran. Its `undo` runs once no module declares the script. */
export type ScriptBefore = { was: 'run' };

type Declared = ResolvedResource<'script'>;

const shells = new Set(['sh', 'bash']);

const run = (changes: Difference['changes'] = []): Difference => ({ action: 'run', changes, diff: null });

export const script = defineProvider<'script', SeenScript, ScriptBefore>({
  type: 'script',
  fields: { program: 'text', apply: 'text', check: 'text?', undo: 'text?', manages: 'text?' },
  recheckable: false,
  brings: () => ['accounts', 'units', 'programs', 'packages'],

  check(resource) {
    const { program } = resource.body;
    if (!shells.has(program)) throw new HostFailure(whyNotRun(program));
  },

  async observe(resource, circumstances, machine) {
    const { check } = resource.body;
    // A script that a trigger runs needs no check.
    if (check == null || circumstances.rerunBy.length > 0) return { checkExit: null };
    const result = await execute(resource, check, machine.limits.checkMs, 4096, machine);
    if (result.timedOut)
      throw new HostFailure(`its \`check\` was stopped because it took longer than ${seconds(machine.limits.checkMs)}`);
    return { checkExit: result.exitCode ?? 128 };
  },

  diff(resource, seen, { purpose, rerunBy, succeeded }) {
    const body = resource.body;
    if (rerunBy.length > 0) return run();
    if (seen.checkExit !== null)
      return seen.checkExit === 0 ? nothing() : run([{ field: 'check', from: `exit ${seen.checkExit}`, to: 'exit 0' }]);
    if (purpose === 'drift') return nothing();
    if (resource.rerun_on.length === 0)
      return { ...run(), message: 'it has neither `check` nor `rerun_on`, so it runs at every apply' };
    const last = (succeeded as Declared | null)?.body;
    const same = last?.apply === body.apply && last.program === body.program;
    return same ? nothing() : run();
  },

  revealsCompletion: (resource) => resource.body.check != null,
  remember: async () => ({ was: 'run' }),

  async apply(resource, _seen, _difference, machine) {
    return outcome(resource, 'apply', resource.body.apply, machine);
  },

  observeForRemoval: () => ({ checkExit: null }),

  diffRemoval(resource) {
    if (resource.body.undo == null) return nothing('no longer managed; its effects stay, because it has no `undo`');
    return { action: 'remove', changes: [], diff: null };
  },

  async remove(resource, _before, _seen, _difference, machine) {
    const { undo } = resource.body;
    return undo == null ? {} : outcome(resource, 'undo', undo, machine);
  },
});

async function outcome(resource: Declared, part: string, text: string, machine: Machine): Promise<Outcome> {
  const { scriptMs, outputBytes } = machine.limits;
  const result = await execute(resource, text, scriptMs, outputBytes, machine, (stream, piece) =>
    machine.printed(resource, stream, piece),
  );
  const { stdout, stderr, exitCode, truncated } = result;
  const output = { stdout, stderr, exitCode, truncated };
  if (result.timedOut)
    return { output, failure: `its \`${part}\` was stopped because it took longer than ${seconds(scriptMs)}` };
  if (exitCode === 0) return { output };
  const how = exitCode === null ? `was ended by ${result.signal}` : `ended with exit code ${exitCode}`;
  const last = lastLine(stderr) || lastLine(stdout);
  return { output, failure: `its \`${part}\` ${how}`, words: last === '' ? '' : `: ${last}` };
}

const execute = (
  resource: Declared,
  text: string,
  timeLimit: number,
  outputCap: number,
  machine: Machine,
  printed?: Command['printed'],
): Promise<CommandResult> => runShell(resource.body.program, text, timeLimit, outputCap, machine, printed);

/**
 * Runs a script. Passes its text to the shell as an unnamed open file, so that the text may have any length, does not
 * appear in the process list, and leaves no file behind. Standard input is empty.
 */
export async function runShell(
  shell: string,
  text: string,
  timeLimit: number,
  outputCap: number,
  machine: Machine,
  printed?: Command['printed'],
): Promise<CommandResult> {
  // The preamble is on the first line, so that line numbers stay correct. Programs that the script starts cannot read
  // the text.
  const file = openUnnamed(`read -r REPLY <&4 || exit 125; unset REPLY; exec 3<&- 4<&-; ${text}`);
  try {
    const result = await runCommand(
      {
        program: shell,
        args: ['/proc/self/fd/3'],
        scriptFd: file.fd,
        timeLimit,
        outputCap,
        started: (process) => machine.startedProcess(process),
        scope: { purpose: 'script', warn: machine.warn },
        ...(printed === undefined ? {} : { printed }),
      },
      machine.clock,
    );
    return { ...result, stderr: result.stderr.replace(/^\/proc\/self\/fd\/3: /gm, '') };
  } finally {
    file.close();
  }
}

const lastLine = (text: string): string => text.trimEnd().split('\n').at(-1)?.trim().slice(0, 500) ?? '';
const seconds = (ms: number): string => `${ms / 1000} s`;
