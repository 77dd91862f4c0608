import { listAgents, matchSelector } from '@muster/protocol/http';
import type { Context } from '../../context/context.ts';
import type { Register } from '../../context/verb.ts';
import { showingFault } from '../../execution/selector-fault.ts';
import { type Exit, exits } from '../../exit.ts';
import { agentLabel, byLabel, connectionColumn, tagTexts } from '../../text/agent-label.ts';
import { counted } from '../../text/style.ts';

export const register: Register = (command, act) => {
  command
    .command('match')
    .description('Show which approved agents a selector matches')
    .argument('<selector>', 'E.g. "role=web site in (paris,rome)"; an empty selector matches no agent')
    .option('--exit-code', 'Exit with 1 when no agent matches')
    .addHelpText('after', '\nExample:\n  $ muster selectors match "role=web attr.distro=debian"')
    .action(act(match));
};

async function match(context: Context, selector: string, options: { exitCode?: boolean }): Promise<Exit> {
  const { out } = context;
  const { call } = await context.connect();
  const { matches } = await call(matchSelector, { body: { selector } }).catch(showingFault(selector));
  const exit = matches.length === 0 && options.exitCode ? exits.failed : exits.done;
  if (out.json) {
    out.data({ matches });
    return exit;
  }
  if (matches.length === 0) {
    out.note('No approved agent matches. To see the tags in use: muster tags list');
    return exit;
  }
  const matching = new Set(matches);
  const agents = (await call(listAgents, { query: { status: 'approved', sort: 'name', filter: selector } })).filter(
    ({ node_id }) => matching.has(node_id),
  );
  out.table(
    [
      { heading: 'AGENT', text: agentLabel, flexible: true, paint: (text, _, { color }) => color.bold(text) },
      connectionColumn(out.style),
      {
        heading: 'TAGS',
        text: ({ tags }) => tagTexts(tags).join(' ') || null,
        flexible: true,
      },
      { heading: 'NODE ID', text: ({ node_id }) => node_id, extra: true },
    ],
    agents.toSorted(byLabel),
  );
  out.note(`\n${counted(matches.length, 'agent matches', 'agents match')}.`);
  return exit;
}
