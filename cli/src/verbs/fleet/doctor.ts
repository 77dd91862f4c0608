import { protocolVersion } from '@muster/protocol/wire';
import packageJson from '../../../package.json' with { type: 'json' };
import type { Context } from '../../context/context.ts';
import type { Register } from '../../context/verb.ts';
import { collectFleet, collectHere, collectMachine, collectReach, defaultDirectories } from '../../doctor/collect.ts';
import { type Finding, findingsOf } from '../../doctor/finding.ts';
import { judgeHere } from '../../doctor/here.ts';
import { judgeMachine } from '../../doctor/machine.ts';
import { isTrusted, judgeFleet, judgeReach } from '../../doctor/orchestrator.ts';
import { type Exit, exits, usageError } from '../../exit.ts';
import { sanitiseLine } from '../../text/sanitize.ts';
import { counted } from '../../text/style.ts';
import { wrap } from '../../text/table.ts';
import { wrapWords } from '../../text/width.ts';
import { unreachable } from '../../transport/client.ts';
import { explain } from '../../transport/explain.ts';

interface Options {
  agent?: boolean;
  orchestrator?: boolean;
  dataDir?: string;
  audit?: boolean;
}

export const register: Register = (command, act) => {
  command
    .option('--agent', 'Check only the agent of this machine')
    .option('--orchestrator', 'Check only the orchestrator of this machine')
    .option('--data-dir <directory>', 'With --agent or --orchestrator: its data directory')
    .option('--audit', 'Also verify the chain of the audit log')
    .addHelpText(
      'after',
      '\nChecks your files, the connection to the orchestrator, the orchestrator, its agents, and Muster’s files on this machine.\nChanges nothing. Exits with 1 when there is a problem. Run it as root to check data directories.\n\nExamples:\n  $ muster doctor\n  $ muster doctor --agent --data-dir /var/lib/muster-agent --json',
    )
    .action(act(doctor));
};

async function doctor(context: Context, options: Options): Promise<Exit> {
  const { out } = context;
  const { agent, orchestrator, dataDir } = options;
  if (dataDir !== undefined && agent === orchestrator)
    throw usageError('--data-dir needs either --agent or --orchestrator', 'Add --agent or --orchestrator.');
  const progress = out.progress('looking');
  const findings: Finding[] = [];
  try {
    findings.push(...judgeHere(await collectHere(context)));
    const publicKey = await askOrchestrator(context, options, findings);
    for (const program of ['agent', 'orchestrator'] as const) {
      const isNamed = options[program] === true;
      // Checks only the program that an option names.
      if (!isNamed && (agent || orchestrator)) continue;
      const facts = await collectMachine(
        program,
        (isNamed ? dataDir : undefined) ?? defaultDirectories[program],
        isNamed,
        publicKey,
      );
      if (facts !== null) findings.push(...judgeMachine(facts));
    }
  } finally {
    progress.end();
  }
  const problems = findings.filter(({ verdict }) => verdict === 'problem').length;
  if (out.json) out.data({ ok: problems === 0, findings });
  else show(context, findings, problems);
  return problems === 0 ? exits.done : exits.failed;
}

const timedOut = Object.assign(new Error('no answer within the time limit'), { code: 'ETIMEDOUT' });

/**
 * Checks the orchestrator.
 * @returns its public key; null if it did not respond
 */
async function askOrchestrator(context: Context, options: Options, findings: Finding[]): Promise<string | null> {
  const target = await context.target().catch(() => null);
  if (target === null) return null;
  const own = { version: packageJson.version, protocol: protocolVersion };
  const { facts, publicKey } = await collectReach(context, target, own);
  findings.push(...judgeReach(facts));
  if (facts.unreachable !== null || (!isTrusted(facts) && !target.insecure)) return publicKey;
  try {
    const request = collectFleet(context, facts.status?.version ?? null, options);
    const late = new Promise<never>((_, reject) => {
      const secs = options.audit ? 600 : 60;
      setTimeout(() => reject(unreachable(new URL(target.url), timedOut)), secs * 1000).unref();
    });
    findings.push(...judgeFleet(await Promise.race([request, late])));
  } catch (error) {
    const { message, remedy } = explain(error);
    findings.push(
      findingsOf('orchestrator').problem(
        'signed_in',
        message,
        'Checks that need a sign-in were skipped.',
        remedy ?? 'Sign in: muster login',
      ),
    );
  }
  return publicKey;
}

const headings: Readonly<Record<Finding['area'], string>> = {
  here: 'Your files',
  orchestrator: 'Orchestrator',
  fleet: 'Agents',
  machine: 'This machine',
};

function show({ out }: Context, findings: readonly Finding[], problems: number): void {
  const { color, width } = out.style;
  const margin = ' '.repeat(11);
  const wrapped = (text: string) =>
    width === null ? text : wrapWords(text, width - margin.length, '').replaceAll('\n', `\n${margin}`);
  // Breaks words as well, such as fingerprints. Commands stay whole, so that they can be copied.
  const broken = (text: string) => (width === null ? text : wrap(text, width - margin.length).join(`\n${margin}`));
  const marks = { ok: color.green('ok     '), warning: color.yellow('warning'), problem: color.red('problem') };
  for (const [area, heading] of Object.entries(headings)) {
    const inside = findings.filter((finding) => finding.area === area);
    if (inside.length === 0) continue;
    out.print(color.bold(heading));
    for (const { verdict, what, why, remedy } of inside) {
      out.print(`  ${marks[verdict]}  ${broken(sanitiseLine(what))}`);
      if (why !== null) out.print(color.dim(`${margin}${broken(sanitiseLine(why))}`));
      if (remedy !== null) out.print(`${margin}${wrapped(`${color.cyan('hint:')} ${sanitiseLine(remedy)}`)}`);
    }
  }
  const warnings = findings.filter(({ verdict }) => verdict === 'warning').length;
  out.note(`\n${counted(problems, 'problem')}, ${counted(warnings, 'warning')}.`);
}
