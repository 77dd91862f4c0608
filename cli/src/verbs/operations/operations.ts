import { operationStatuses } from '@muster/protocol';
import {
  cancelOperation,
  getOperation,
  getOperationOutput,
  listAgentOperations,
  listOperations,
  type Operation,
  type OperationEntry,
} from '@muster/protocol/http';
import { Option } from 'commander';
import { statusText } from '../../../../client/src/status-text.ts';
import type { Context } from '../../context/context.ts';
import type { Register } from '../../context/verb.ts';
import { chooseAgent } from '../../execution/choose-agents.ts';
import { eachNamed } from '../../execution/each.ts';
import { exitOfOperation } from '../../execution/operation.ts';
import { paintedBy } from '../../execution/run-text.ts';
import { watchOption } from '../../execution/watch-option.ts';
import type { Exit } from '../../exit.ts';
import { agentNames } from '../../text/agent-label.ts';
import { renderOperation, summaryText } from '../../text/plan-text.ts';
import { sanitise, sanitiseLine } from '../../text/sanitize.ts';
import { ago, duration, listedId, when } from '../../text/style.ts';
import { parseChoice, parseCount } from '../../text/values.ts';
import { findOperation } from './find-operation.ts';
import { followOutput, output } from './operation-output.ts';

const naming = 'the id, or the beginning or end of it if only one recent operation matches';

export const register: Register = (command, act) => {
  command
    .command('list')
    .description('List operations, newest first')
    .option('--agent <agent>', 'Only operations of this agent')
    .addOption(
      // The action parses the value, because it accepts `canceled` too.
      new Option('--status <status>', 'Only operations with this status').choices(operationStatuses).argParser(String),
    )
    .option('--kind <kind>', 'Only this kind: apply or plan')
    .option('--limit <n>', 'Maximum number', '50')
    .option('--offset <n>', 'Number of newer operations to skip', '0')
    .addOption(watchOption())
    .addHelpText(
      'after',
      `\nStatuses: ${operationStatuses.join(', ')}.\n\nExample:\n  $ muster operations list --agent web-1 --status failed`,
    )
    .action(act(list));
  command
    .command('show')
    .description('Show an operation with its resources')
    .argument('<operation>', naming)
    .option('--output', 'Include the output of its scripts')
    .addHelpText('after', '\nExample:\n  $ muster operations show 01KAGZ4D3E5F6G7H8J9K0M1N2P --output')
    .action(act(show));
  command
    .command('output')
    .description('Show the output of scripts, also of running ones')
    .argument('<operation>', naming)
    .option('-f, --follow', 'Show output as it is printed, until the operation has ended')
    .addHelpText('after', '\nExample:\n  $ muster operations output 01KAGZ4D3E5F6G7H8J9K0M1N2P --follow')
    .action(act(output));
  command
    .command('follow')
    .description('Follow an operation, and exit with its exit code')
    .argument('<operation>', naming)
    .addHelpText('after', '\nExample:\n  $ muster operations follow 01KAGZ4D3E5F6G7H8J9K0M1N2P')
    .action(act(follow));
  command
    .command('cancel')
    .description('Cancel operations: a queued one ends immediately, a running one after its current resource')
    .argument('<operations...>', naming)
    .addHelpText('after', '\nExample:\n  $ muster operations cancel 01KAGZ4D3E5F6G7H8J9K0M1N2P')
    .action(act(cancel));
};

async function list(
  context: Context,
  options: { agent?: string; status?: string; kind?: string; limit: string; offset: string },
): Promise<undefined> {
  const { out } = context;
  const limit = parseCount('--limit', options.limit, 1, 500);
  const offset = parseCount('--offset', options.offset, 0, 999_999_999);
  const status = options.status === undefined ? undefined : parseChoice('--status', options.status, operationStatuses);
  const kind = options.kind === undefined ? undefined : parseChoice('--kind', options.kind, ['apply', 'plan']);
  const { call } = await context.connect();
  const agent = options.agent === undefined ? undefined : await chooseAgent(call, options.agent);
  const query = {
    limit: String(limit),
    ...(offset === 0 ? {} : { offset: String(offset) }),
    ...(status === undefined ? {} : { status }),
    ...(kind === undefined ? {} : { kind }),
  };
  const page =
    agent === undefined
      ? await call(listOperations, { query })
      : await call(listAgentOperations, { params: { node_id: agent.node_id }, query });
  if (out.json) return out.data(page);
  const { operations } = page;
  if (operations.length === 0) return out.note('No operation found.');
  const names = await agentNames(call, new Set(operations.map(({ node_id }) => node_id)));
  out.table<OperationEntry>(
    [
      { heading: 'OPERATION', text: ({ operation_id }) => listedId(operation_id, out.style) },
      { heading: 'AGENT', text: ({ node_id }) => names.get(node_id) ?? node_id.slice(0, 12), flexible: true },
      { heading: 'KIND', extra: true, text: ({ kind }) => kind },
      {
        heading: 'STATUS',
        text: ({ status }) => statusText(status),
        paint: (text, { status }, { color }) => paintedBy(status, color)(text),
      },
      { heading: 'WHEN', text: ({ created_at }) => when(created_at, out.style) },
      { heading: 'RESOURCES', text: summaryText, flexible: true, extra: true },
    ],
    operations,
  );
  if (page.has_more) out.note(`\nThere are more operations: add --offset ${offset + operations.length}`);
}

async function follow(context: Context, idPart: string): Promise<Exit> {
  const { out } = context;
  const { call } = await context.connect();
  const operation_id = await findOperation(call, idPart);
  const progress = out.progress('following the operation');
  await followOutput(context, call, operation_id, progress).finally(progress.end);
  const operation = await call(getOperation, { params: { operation_id } });
  if (out.json) out.data(operation);
  else {
    const names = await agentNames(call, new Set([operation.node_id]));
    out.print(renderOperation(operation, names.get(operation.node_id) ?? operation.node_id, out.style));
  }
  return exitOfOperation(operation);
}

async function show(context: Context, id: string, options: { output?: boolean }): Promise<undefined> {
  const { out } = context;
  const { color } = out.style;
  const { call } = await context.connect();
  const operation = await call(getOperation, { params: { operation_id: await findOperation(call, id) } });
  const { operation_id, node_id } = operation;
  const output = options.output
    ? (await call(getOperationOutput, { params: { node_id, operation_id } })).output
    : undefined;
  if (out.json) return out.data(output === undefined ? operation : { ...operation, output });
  const names = await agentNames(call, new Set([node_id]));
  const { created_at, started_at, finished_at, status } = operation;
  const took = started_at === null || finished_at === null ? '' : `, took ${duration(finished_at - started_at)}`;
  out.print(
    color.dim(
      `${sanitiseLine(operation_id)}  ${statusText(status)}, requested ${ago(created_at, out.style.now)}${took}`,
    ),
  );
  out.print(renderOperation(operation, names.get(node_id) ?? node_id, out.style));
  for (const [resourceKey, { stdout, stderr, exit_code, truncated }] of Object.entries(output ?? {})) {
    out.print(
      `\n${color.bold(sanitiseLine(resourceKey))} ${color.dim(exit_code === null ? 'did not end' : `exit ${exit_code}`)}`,
    );
    if (stdout !== '') out.print(sanitise(stdout));
    if (stderr !== '') out.print(color.red(sanitise(stderr.trimEnd())));
    if (truncated) out.print(color.dim('(output was truncated)'));
  }
}

async function cancel(context: Context, idParts: string[]): Promise<Exit> {
  const { out } = context;
  const { call } = await context.connect();
  const cancelled: Operation[] = [];
  const exit = await eachNamed(context, idParts, async (id) => {
    const operation = await call(cancelOperation, { params: { operation_id: await findOperation(call, id) } });
    cancelled.push(operation);
    const { operation_id, status } = operation;
    out.print(
      status === 'cancelled'
        ? `Canceled ${sanitiseLine(operation_id)}.`
        : `Canceling ${sanitiseLine(operation_id)}. It stops after its current resource.`,
    );
  });
  if (out.json) out.data(cancelled);
  return exit;
}
