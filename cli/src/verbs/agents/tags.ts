import { listTags } from '@muster/protocol/http';
import type { Context } from '../../context/context.ts';
import type { Register } from '../../context/verb.ts';
import { agentNaming, selectorOption } from '../../execution/choose-agents.ts';
import { CliError, exits } from '../../exit.ts';
import { nearest } from '../../text/nearest.ts';
import { replaceTags, tag, tagWords, untag } from './agents-change.ts';

export const register: Register = (command, act) => {
  command
    .command('list')
    .description('List the tags in use, with the number of agents')
    .argument('[keys...]', 'Only these keys')
    .addHelpText('after', '\nExample:\n  $ muster tags list role')
    .action(act(list));
  const many = (name: string, description: string, words: string) =>
    command
      .command(name)
      .description(description)
      .argument('[words...]', words)
      .addOption(selectorOption())
      .option('-y, --yes', 'Do not ask for confirmation');
  many('set', 'Set tags of agents; same as agents tag', tagWords)
    .addHelpText(
      'after',
      '\nExamples:\n  $ muster tags set web-1 canary\n  $ muster tags set web-1 web-2 site=paris\n  $ muster tags set -l attr.distro=debian os=debian',
    )
    .action(act(tag));
  many(
    'remove',
    'Remove tags from agents; same as agents untag',
    `Agents separated by commas, then keys; with --selector, only keys. Specify an agent by ${agentNaming}`,
  )
    .addHelpText(
      'after',
      '\nExamples:\n  $ muster tags remove web-1,web-2 site\n  $ muster tags remove -l site=paris site',
    )
    .action(act(untag));
  many(
    'replace',
    'Set exactly these tags on agents, and remove all others',
    'Agents, then tags as key=value; without tags, all tags are removed',
  )
    .addHelpText('after', '\nExample:\n  $ muster tags replace web-1 role=web site=paris')
    .action(act(replaceTags));
};

async function list(context: Context, keys: string[]): Promise<undefined> {
  const { out } = context;
  const { call } = await context.connect();
  const found = await call(listTags, {});
  const isSelected = (key: string) => keys.length === 0 || keys.includes(key);
  const missing = keys.find((key) => !Object.hasOwn(found.tags, key));
  if (missing !== undefined) {
    const near = nearest(missing, Object.keys(found.tags));
    throw new CliError(
      exits.failed,
      'tag_not_found',
      `no agent has a tag ${JSON.stringify(missing)}`,
      `${near === null ? '' : `Did you mean ${near}? `}List the tags in use: muster tags list`,
    );
  }
  if (out.json) {
    const only = <V>(map: Record<string, V>) =>
      Object.fromEntries(Object.entries(map).filter(([key]) => isSelected(key)));
    out.data({ tags: only(found.tags), counts: only(found.counts) });
    return undefined;
  }
  const rows = Object.entries(found.tags)
    .filter(([key]) => isSelected(key))
    .flatMap(([key, values]) =>
      values.map((value, at) => ({ key, value, first: at === 0, agents: found.counts[key]?.[value] ?? 0 })),
    );
  if (rows.length === 0) return out.note('No agent has a tag yet: muster tags set AGENT role=web');
  out.table(
    [
      {
        heading: 'KEY',
        // In a pipe, prints the key on every line, for scripts.
        text: ({ key, first }) => (first || out.style.width === null ? key : ''),
        flexible: true,
        paint: (text, _, { color }) => color.bold(text),
      },
      { heading: 'VALUE', text: ({ value }) => (value === '' ? '""' : value), flexible: true },
      { heading: 'AGENTS', text: ({ agents }) => String(agents), align: 'right' },
    ],
    rows,
  );
}
