import type { ResolvedResource } from '@muster/protocol/module';
import { HostFailure } from '../../host/failure.ts';
import { setOpenOwnership } from '../../host/files/ownership.ts';
import { pathExists } from '../../host/files/path-exists.ts';
import { checkPath } from '../../host/files/path-walk.ts';
import { lastLine } from '../../host/processes/failure-text.ts';
import { type Command, type CommandResult, runCommand } from '../../host/processes/run-command.ts';
import { openUnnamed } from '../../host/processes/unnamed-file.ts';
import { defineProvider } from '../provider/define-provider.ts';
import { whyNotRun } from '../provider/foreign.ts';
import { type Circumstances, type Difference, type Machine, nothing, type Outcome } from '../provider/provider.ts';
import { type Launch, launchOf, shells } from './launch.ts';
import { prerequisitesOf, requirePrerequisites } from './prerequisites.ts';

export interface SeenScript {
  /** Exit code of `check`; with `creates`, 0 if the path exists, otherwise 1. Null if neither was evaluated. */
  checkExit: number | null;
  /** Absent in records from earlier releases. */
  missing?: NonNullable<Difference['awaits']>;
}

/** Record of a script that ran. Its `undo` runs once no module declares the script. */
export type ScriptBefore = { was: 'run' };

type Declared = ResolvedResource<'script'>;

const run = (changes: Difference['changes'] = []): Difference => ({ action: 'run', changes, diff: null });

export const script = defineProvider<'script', SeenScript, ScriptBefore>({
  type: 'script',
  fields: {
    program: 'text',
    apply: 'text',
    check: 'text?',
    undo: 'text?',
    manages: 'text?',
    creates: 'text?',
    user: 'text?',
    group: 'text?',
    working_directory: 'text?',
    environment: 'map?',
    timeout: 'integer?',
    umask: 'text?',
  },
  recheckable: false,
  brings: () => ['accounts', 'units', 'programs', 'packages', 'databases', 'servers'],
  makes: ({ body: { creates } }) => (creates == null ? [] : [creates]),
  watched: ({ body: { creates } }) => (creates == null ? [] : [creates]),

  check({ body }) {
    const { program, umask, timeout, creates, working_directory } = body;
    if (!shells.includes(program) && !program.startsWith('/')) throw new HostFailure(whyNotRun(program));
    for (const path of [program, creates, working_directory])
      if (path?.startsWith('/') && path !== '/') checkPath(path);
    if (umask != null && !/^[0-7]{3,4}$/.test(umask)) throw new HostFailure('`umask` must be 3 or 4 octal digits');
    if (timeout != null && timeout < 1) throw new HostFailure('`timeout` must be at least 1');
  },

  async observe(resource, circumstances, machine) {
    const { check, creates } = resource.body;
    const { missing } = await prerequisitesOf(resource.body, machine);
    // A script that a trigger runs needs no check.
    if (circumstances.rerunBy.length > 0) return { checkExit: null, missing };
    if (creates != null) return { checkExit: willExist(creates, circumstances) ? 0 : 1, missing };
    if (check == null || missing.length > 0) return { checkExit: null, missing };
    const result = await execute(resource, check, machine.limits.checkMs, 4096, machine);
    if (result.timedOut)
      throw new HostFailure(
        `its \`check\` was stopped because it took longer than ${seconds(limitOf(resource, machine.limits.checkMs))}`,
      );
    return { checkExit: result.exitCode ?? 128, missing };
  },

  diff(resource, seen, { purpose, rerunBy, succeeded }) {
    const { body } = resource;
    const { missing = [] } = seen;
    const needed = missing.length === 0 ? {} : { awaits: missing };
    if (rerunBy.length > 0) return { ...run(), ...needed };
    if (seen.checkExit === 0) return nothing();
    if (body.creates != null) return { ...run([{ field: 'creates', from: 'missing', to: body.creates }]), ...needed };
    if (seen.checkExit !== null) return run([{ field: 'check', from: `exit ${seen.checkExit}`, to: 'exit 0' }]);
    // The check could not run.
    if (body.check != null) return { ...run(), ...needed };
    if (purpose === 'drift') return nothing();
    if (resource.rerun_on.length === 0)
      return { ...run(), ...needed, message: 'it has neither `check` nor `rerun_on`, so it runs at every apply' };
    return isSameWork((succeeded as Declared | null)?.body, body) ? nothing() : { ...run(), ...needed };
  },

  revealsCompletion: ({ body }) => body.check != null || body.creates != null,
  remember: async () => ({ was: 'run' }),

  async apply(resource, _seen, _difference, machine) {
    return outcome(resource, 'apply', resource.body.apply, machine);
  },

  observeForRemoval: () => ({ checkExit: null, missing: [] }),

  diffRemoval(resource) {
    if (resource.body.undo == null) return nothing('no longer managed; its effects stay, because it has no `undo`');
    return { action: 'remove', changes: [], diff: null };
  },

  async remove(resource, _before, _seen, _difference, machine) {
    const { undo } = resource.body;
    return undo == null ? {} : outcome(resource, 'undo', undo, machine);
  },
});

/** Reports whether the path will exist when the script is applied. */
function willExist(path: string, { willBeRemoved, willBeThere }: Circumstances): boolean {
  return pathExists(path) ? !willBeRemoved(path) : willBeThere(path);
}

/** Reports whether both declarations make the same change. */
const isSameWork = (last: Declared['body'] | undefined, now: Declared['body']): boolean => {
  const work = ({ program, apply, user, group, working_directory, environment, umask }: Declared['body']): string =>
    JSON.stringify([program, apply, user, group, working_directory, umask, Object.entries(environment ?? {}).sort()]);
  return last !== undefined && work(last) === work(now);
};

/** Returns the time limit in milliseconds. */
const limitOf = ({ body: { timeout } }: Declared, usual: number): number => (timeout == null ? usual : timeout * 1000);

async function outcome(resource: Declared, part: string, text: string, machine: Machine): Promise<Outcome> {
  const { scriptMs, outputBytes } = machine.limits;
  const result = await execute(resource, text, scriptMs, outputBytes, machine, (stream, piece) =>
    machine.printed(resource, stream, piece),
  );
  const { stdout, stderr, exitCode, truncated } = result;
  const output = { stdout, stderr, exitCode, truncated };
  if (result.timedOut)
    return {
      output,
      failure: `its \`${part}\` was stopped because it took longer than ${seconds(limitOf(resource, scriptMs))}`,
    };
  if (exitCode === 0) return { output };
  const how = exitCode === null ? `was ended by ${result.signal}` : `ended with exit code ${exitCode}`;
  const last = lastLine(stderr) || lastLine(stdout);
  return { output, failure: `its \`${part}\` ${how}`, words: last === '' ? '' : `: ${last}` };
}

async function execute(
  resource: Declared,
  text: string,
  usualLimit: number,
  outputCap: number,
  machine: Machine,
  printed?: Command['printed'],
): Promise<CommandResult> {
  const account = await requirePrerequisites(resource.body, machine);
  return launch(launchOf(resource.body, text, account), limitOf(resource, usualLimit), outputCap, machine, printed);
}

/** Runs shell code as root, with empty standard input. */
export const runShell = (
  text: string,
  timeLimit: number,
  outputCap: number,
  machine: Machine,
  environment: Readonly<Record<string, string>> = {},
): Promise<CommandResult> =>
  launch(launchOf({ program: 'sh', environment: { ...environment } }, text, null), timeLimit, outputCap, machine);

/**
 * Runs a script. Passes its text as an unnamed open file, so that the text may have any length, does not appear in the
 * process list, and leaves no file behind. Standard input is empty.
 */
async function launch(
  { program, args, text, environment, reader }: Launch,
  timeLimit: number,
  outputCap: number,
  machine: Machine,
  printed?: Command['printed'],
): Promise<CommandResult> {
  const file = openUnnamed(text);
  try {
    if (reader !== null) setOpenOwnership(file.fd, { ...reader, mode: 0o600 });
    const result = await runCommand(
      {
        program,
        args,
        environment,
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

const seconds = (ms: number): string => `${ms / 1000} s`;
