import type { Sample } from '@muster/protocol';
import type { Client } from '@muster/protocol/client';
import { type Agent, latestSample, latestSamples, listAgents, listSamples, maxSamples } from '@muster/protocol/http';
import type { Context } from '../../context/context.ts';
import type { Register } from '../../context/verb.ts';
import {
  type AgentOptions,
  agentNaming,
  chooseAgent,
  chooseAgents,
  selectorOption,
  severalNaming,
} from '../../execution/choose-agents.ts';
import { watchOption } from '../../execution/watch-option.ts';
import { type Exit, exits, usageError } from '../../exit.ts';
import { agentLabel, byLabel } from '../../text/agent-label.ts';
import {
  columnsFor,
  csvHead,
  csvLine,
  cutTime,
  medianInterval,
  renderSeries,
  sampleLine,
  shareCell,
  shareOf,
} from '../../text/metrics-text.ts';
import { sanitiseLine, toJson } from '../../text/sanitize.ts';
import { byShare, glyphsFor } from '../../text/sparkline.ts';
import { ago, duration, when } from '../../text/style.ts';
import type { Column } from '../../text/table.ts';
import { parseCount, parseDuration, parseMoment } from '../../text/values.ts';
import { explain } from '../../transport/explain.ts';

export const register: Register = (command, act) => {
  command
    .command('list')
    .description('Show the newest sample of each agent')
    .argument('[agents...]', `Only these agents: ${severalNaming}`)
    .addOption(selectorOption())
    .addOption(watchOption())
    .option('--ascii', 'Draw with plain characters')
    .addHelpText(
      'after',
      '\nSamples raise no event: --watch reads them every 15 s, and after each event of the fleet.\n\nExample:\n  $ muster metrics list --selector role=web',
    )
    .action(act(list));
  command
    .command('show')
    .description('Show the metrics of an agent over time')
    .argument('<agent>', agentNaming)
    .option('--since <time>', 'Start: 24h, 7d, a day, or a UNIX time', '1h')
    .option('-f, --follow', 'Keep updating as samples arrive')
    .option('--csv', 'Print every sample as comma-separated values')
    .option('--step <duration>', 'With --csv or --json: average over this duration')
    .option('--ascii', 'Draw with plain characters')
    .addHelpText(
      'after',
      '\nIn CSV, a missing value is empty. A gap means no samples; – means that the agent could not measure the value.\n\nExamples:\n  $ muster metrics show web-1 --since 24h\n  $ muster metrics show web-1 --since 7d --csv > web-1.csv',
    )
    .action(act(show));
  command
    .command('follow')
    .description('Print each sample of an agent as it arrives, one per line')
    .argument('<agent>', agentNaming)
    .option('--since <time>', 'Start: 10m, 1h, a day, or a UNIX time; now by default')
    .option('--csv', 'Print comma-separated values')
    .option('--ascii', 'Draw with plain characters')
    .addHelpText(
      'after',
      '\nRuns until Ctrl-C; with --json each line is a sample.\n\nExample:\n  $ muster metrics follow web-1 --json',
    )
    .action(act(follow));
};

/** Maximum number of agents to request individually. */
const few = 20;

async function newestOf(call: Client, agents: readonly Agent[], filter: string | undefined) {
  if (filter === undefined && agents.length <= few) {
    const each = await Promise.all(
      agents.map(async ({ node_id }) => [node_id, await call(latestSample, { params: { node_id } })] as const),
    );
    return Object.fromEntries(each.filter((entry): entry is [string, Sample] => entry[1] !== undefined));
  }
  const nodeIds = new Set(agents.map(({ node_id }) => node_id));
  const all = await call(latestSamples, { query: filter === undefined ? {} : { filter } });
  return Object.fromEntries(Object.entries(all).filter(([node_id]) => nodeIds.has(node_id)));
}

async function list(
  context: Context,
  typed: string[],
  options: AgentOptions & { ascii?: boolean },
): Promise<undefined> {
  const { out, env } = context;
  const { style } = out;
  const { selector } = options;
  const { call } = await context.connect();
  const isEach = typed.length === 0 && selector === undefined;
  const agents = isEach
    ? await call(listAgents, { query: { status: 'approved', sort: 'name' } })
    : await chooseAgents(context, typed, options);
  const samples = await newestOf(call, agents, isEach ? '' : selector);
  if (out.json) return out.data(samples);
  if (agents.length === 0) return out.note('There are no agents yet. Enroll one: muster agents enroll');
  const glyphs = glyphsFor(env, options.ascii);
  const cells = style.width !== null && style.width >= 76 ? 10 : 0;
  type Row = { agent: Agent; sample: Sample | undefined };
  const share = (heading: string, of: (sample: Sample) => number | null): Column<Row> => ({
    heading,
    text: ({ sample }) => (sample === undefined ? null : shareCell(of(sample), cells, glyphs)),
    paint: (text, { sample }, { color }) => byShare(sample === undefined ? null : of(sample), color)(text),
  });
  out.table<Row>(
    [
      {
        heading: 'AGENT',
        text: ({ agent }) => agentLabel(agent),
        flexible: true,
        paint: (text, _, { color }) => color.bold(text),
      },
      share('CPU', ({ cpu_usage }) => (cpu_usage === null ? null : cpu_usage / 100)),
      share('MEMORY', ({ memory_used, memory_total }) => shareOf(memory_used, memory_total)),
      share('DISK', ({ disk_used, disk_total }) => shareOf(disk_used, disk_total)),
      {
        heading: 'LOAD',
        align: 'right',
        extra: true,
        text: ({ sample }) => sample?.load1?.toFixed(2) ?? null,
      },
      {
        heading: 'UPTIME',
        extra: true,
        text: ({ sample }) => (typeof sample?.uptime === 'number' ? duration(sample.uptime) : null),
      },
      {
        heading: 'SAMPLED',
        extra: true,
        text: ({ sample }) => (sample === undefined ? 'never' : when(sample.collected_at, style)),
      },
    ],
    (isEach ? agents.toSorted(byLabel) : agents).map((agent) => ({ agent, sample: samples[agent.node_id] })),
  );
}

interface ShowOptions {
  since: string;
  follow?: boolean;
  csv?: boolean;
  step?: string;
  ascii?: boolean;
}

/** Polling interval in milliseconds. Agents take a sample every 30 s by default. */
const askMs = 5_000;

/** Returns how many seconds ago a moment was. A number with up to nine digits is a duration in seconds. */
const secondsBack = (text: string, now: number): number =>
  /^\d{1,9}$/.test(text) ? parseDuration(text) : Math.floor(now) - parseMoment(text, now);

async function show(context: Context, nameOrId: string, options: ShowOptions): Promise<Exit> {
  const { out } = context;
  const since = secondsBack(options.since, context.now());
  if (since < 60)
    throw usageError(
      `--since ${JSON.stringify(options.since)} is too short`,
      'Specify at least one minute, such as 1h.',
    );
  const step = options.step === undefined ? undefined : parseDuration(options.step);
  const asData = out.json || options.csv === true;
  if (options.csv && out.json) throw usageError('--csv cannot be combined with --json');
  if (options.follow && out.json)
    throw usageError(
      '--follow draws a chart and cannot be combined with --json',
      `To follow as JSON: muster metrics follow ${nameOrId} --json`,
    );
  if (step !== undefined && !asData)
    throw usageError('--step needs --csv or --json: the steps of a chart depend on the width of the terminal');
  if (step !== undefined && options.follow) throw usageError('--step cannot be combined with --follow');
  if (step !== undefined) parseCount('--step', String(step), 1, 31_536_000);
  const { call } = await context.connect();
  const agent = await chooseAgent(call, nameOrId);
  if (asData || (options.follow && out.style.width === null))
    return asLines(context, call, agent, since, step, options);
  return draw(context, call, agent, since, options);
}

async function follow(
  context: Context,
  nameOrId: string,
  { since, ...options }: { since?: string; csv?: boolean; ascii?: boolean },
): Promise<Exit> {
  if (options.csv && context.out.json) throw usageError('--csv cannot be combined with --json');
  const back = since === undefined ? 0 : secondsBack(since, context.now());
  const { call } = await context.connect();
  return asLines(context, call, await chooseAgent(call, nameOrId), back, undefined, { ...options, follow: true });
}

async function samplesOf(
  call: Client,
  { node_id }: Agent,
  query: { since?: number; limit?: number; step?: number | undefined },
): Promise<Sample[]> {
  const typed = Object.fromEntries(
    Object.entries(query).flatMap(([name, value]) => (value === undefined ? [] : [[name, String(value)]])),
  );
  return (await call(listSamples, { params: { node_id }, query: typed }))?.samples ?? [];
}

/** Prints samples as lines. With `--follow`, also prints each new one. */
async function asLines(
  context: Context,
  call: Client,
  agent: Agent,
  since: number,
  step: number | undefined,
  { csv, follow, ascii }: Omit<ShowOptions, 'since'>,
): Promise<Exit> {
  const { out, env, now, sleep } = context;
  const glyphs = glyphsFor(env, ascii);
  const from = Math.floor(now()) - since;
  const samples = await samplesOf(call, agent, { since: from, step, limit: maxSamples });
  if (out.json && !follow) {
    out.data({ node_id: agent.node_id, samples });
    return exits.done;
  }
  const line = csv ? csvLine : out.json ? (sample: Sample) => toJson(sample, 'line') : undefined;
  const write = (sample: Sample) => out.raw(`${line?.(sample) ?? sampleLine(sample, glyphs)}\n`);
  if (csv) out.raw(`${csvHead}\n`);
  for (const sample of samples) write(sample);
  if (samples.length === 0 && !follow) out.note(nothing(agent));
  for (let last = samples.at(-1)?.collected_at ?? from; follow; ) {
    await sleep(askMs);
    for (const sample of await samplesOf(call, agent, { since: last + 1 })) {
      write(sample);
      last = sample.collected_at;
    }
  }
  return exits.done;
}

const nothing = (agent: Agent): string =>
  `${agentLabel(agent)} has no samples of that period. To see when it was last seen: muster agents show ${agentLabel(agent)}`;

async function draw(
  context: Context,
  call: Client,
  agent: Agent,
  since: number,
  { follow, ascii }: ShowOptions,
): Promise<Exit> {
  const { out, env, now, sleep } = context;
  const glyphs = glyphsFor(env, ascii);
  const cpus = Number(agent.attributes.cpus) || null;
  const picture = async (): Promise<string | null> => {
    const { style } = out;
    const recent = await samplesOf(call, agent, { limit: 20 });
    const newest = recent.at(-1);
    if (newest === undefined) return null;
    const window = cutTime(since, Math.floor(now()), columnsFor(style.width), medianInterval(recent));
    const { from, step } = window;
    const samples = await samplesOf(call, agent, { since: from - step, step });
    const head = `${style.color.bold(sanitiseLine(agentLabel(agent)))}  ${style.color.dim(
      `last ${duration(since)}, ${duration(step)} per column, newest ${ago(newest.collected_at, style.now)}`,
    )}`;
    return `${head}\n${renderSeries(window, samples, style, { glyphs, cpus })}`;
  };
  let shown = await picture();
  if (shown === null) {
    out.note(nothing(agent));
    return exits.done;
  }
  out.print(shown);
  while (follow) {
    await sleep(askMs);
    // Shows the last chart while the orchestrator is unavailable.
    const next = await picture().catch((error: unknown) => {
      if (explain(error).exit !== exits.unreachable) throw error;
      return null;
    });
    if (next === null) continue;
    out.raw(`\u001b[${shown.split('\n').length}A\u001b[J`);
    shown = next;
    out.print(shown);
  }
  return exits.done;
}
