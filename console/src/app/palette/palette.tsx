import { useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { Command } from 'cmdk';
import { Search } from 'lucide-react';
import { Dialog as Radix } from 'radix-ui';
import { useMemo, useState } from 'react';
import { agentsQuery } from '../../api/agents.ts';
import { assignmentsQuery } from '../../api/assignments.ts';
import { modulesQuery } from '../../api/modules/modules.ts';
import { useIsAdmin } from '../../api/sign-in/use-session.ts';
import { Dot } from '../../parts/badge.tsx';
import { countText } from '../../parts/count.ts';
import { useReturnedFocus } from '../../parts/dialog/use-returned-focus.ts';
import { Keys } from '../../parts/kbd.tsx';
import { Line } from '../../parts/text.tsx';
import {
  actionEntries,
  agentActionEntries,
  agentEntries,
  assignmentActionEntries,
  assignmentEntries,
  type Entry,
  type Go,
  moduleEntries,
  pageEntries,
} from './entries.ts';
import { bestMatches } from './rank.ts';
import { readUses, recordUse } from './uses.ts';

const itemClasses =
  'flex h-9 max-sm:h-11 cursor-default items-center gap-2.5 rounded-md px-2.5 text-sm data-[selected=true]:bg-hover';
const groupClasses =
  '[&_[cmdk-group-heading]]:px-2.5 [&_[cmdk-group-heading]]:py-1.5 [&_[cmdk-group-heading]]:font-medium [&_[cmdk-group-heading]]:text-muted [&_[cmdk-group-heading]]:text-xs';

/** Maximum number of results in a group. */
const maxResults = 8;

/** Maximum number of actions on assignments, so that actions on agents stay visible. */
const maxAssignmentActions = 5;

/** Maximum number of agents to offer before the operator types. */
const maxRecent = 4;

interface Group {
  readonly heading: string;
  readonly entries: readonly Entry[];
  /** Rank of the first entry. Groups are shown in this order. */
  readonly rank: number;
}

/** Returns the entries that match the text, in groups, best first. */
function useGroups(text: string, go: Go, onHelp: () => void): readonly Group[] {
  const { data: agents } = useQuery(agentsQuery);
  const { data: modules } = useQuery(modulesQuery);
  const { data: assignments } = useQuery(assignmentsQuery);
  const isAdmin = useIsAdmin();
  const [usesOf] = useState(readUses);
  const all = useMemo(
    () => ({
      agents: agentEntries(agents ?? [], go),
      modules: moduleEntries(modules ?? [], go),
      assignments: assignmentEntries(assignments ?? [], go),
      actions: actionEntries(go, onHelp, isAdmin),
      pages: pageEntries(go),
    }),
    [agents, modules, assignments, isAdmin, go, onHelp],
  );
  const query = text.trim().toLowerCase();
  return useMemo(() => {
    const group = (heading: string, entries: readonly Entry[], of = query, limit = maxResults): Group => {
      const isOrdered = heading !== 'Actions on agents';
      const { found, count } = bestMatches(entries, of, { limit, usesOf, isOrdered });
      const shown = found.map(({ item }) => item);
      // The agents page lists the agents beyond the limit.
      const more = heading === 'Agents' && count > limit ? [showAllEntry(count, text.trim(), go)] : [];
      return { heading, entries: [...shown, ...more], rank: found[0]?.rank ?? 0 };
    };
    const ofAgents = agentActionEntries(query, agents ?? [], go);
    const ofAssignments = assignmentActionEntries(query, assignments ?? [], go);
    const isTyped = query !== '';
    const groups = [
      group('Actions on assignments', ofAssignments.entries, ofAssignments.query, maxAssignmentActions),
      group('Actions on agents', ofAgents.entries, ofAgents.query),
      ...(isTyped
        ? [group('Agents', all.agents), group('Modules', all.modules), group('Assignments', all.assignments)]
        : [
            group(
              'Recent agents',
              all.agents.filter(({ id }) => usesOf(id) > 0),
              '',
              maxRecent,
            ),
          ]),
      group('Go to', all.pages, query, all.pages.length),
      group('Actions', all.actions, query, all.actions.length),
    ].filter(({ entries }) => entries.length > 0);
    return isTyped ? groups.toSorted((one, other) => one.rank - other.rank) : groups;
  }, [all, agents, assignments, query, text, go, usesOf]);
}

const showAllEntry = (count: number, text: string, go: Go): Entry => ({
  ...{ id: 'all agents', name: `Show all ${countText(count)} in Agents`, icon: Search },
  run: () => go('/agents', { search: { q: text } }),
});

/** The command palette: finds pages, agents, modules, and actions. */
export default function Palette({ onClose, onHelp }: { readonly onClose: () => void; readonly onHelp: () => void }) {
  const [text, setText] = useState('');
  const navigate = useNavigate();
  const go = useMemo((): Go => (to, target) => void navigate({ to, ...target } as never), [navigate]);
  const groups = useGroups(text, go, onHelp);
  const returnFocus = useReturnedFocus(true);
  const choose = ({ id, run }: Entry) => {
    recordUse(id);
    onClose();
    run();
  };
  return (
    <Radix.Root open onOpenChange={(open) => !open && onClose()}>
      <Radix.Portal>
        <Radix.Overlay className="fixed inset-0 z-40 bg-[oklch(0.15_0.02_260/45%)]" />
        <Radix.Content
          aria-describedby={undefined}
          onCloseAutoFocus={returnFocus}
          className="fixed top-[10vh] left-1/2 z-50 w-[min(36rem,94vw)] -translate-x-1/2 overflow-hidden rounded-xl border bg-surface shadow-float outline-none"
        >
          <Radix.Title className="sr-only">Search or go to</Radix.Title>
          <Command shouldFilter={false} loop label="Search or go to">
            <Command.Input
              value={text}
              onValueChange={setText}
              placeholder="Agent, module, assignment, page, or action"
              className="h-12 w-full border-b bg-transparent px-4 text-base outline-none placeholder:text-muted"
            />
            <Command.List className="max-h-[60vh] overflow-y-auto p-1.5">
              <Command.Empty className="px-3 py-8 text-center text-muted text-sm">
                No results. Search for an agent by name, hostname, or ID, or type an action such as “plan web-1”.
              </Command.Empty>
              {groups.map(({ heading, entries }) => (
                <Command.Group key={heading} heading={heading} className={groupClasses}>
                  {entries.map((entry) => (
                    <Command.Item
                      key={entry.id}
                      value={entry.id}
                      className={itemClasses}
                      onSelect={() => choose(entry)}
                    >
                      <EntryLine entry={entry} />
                    </Command.Item>
                  ))}
                </Command.Group>
              ))}
            </Command.List>
          </Command>
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  );
}

function EntryLine({ entry: { icon: Icon, tone, name, label = name, note, keys } }: { readonly entry: Entry }) {
  return (
    <>
      <span aria-hidden="true" className="flex size-4 shrink-0 items-center justify-center text-muted">
        {tone === undefined ? <Icon className="size-4" /> : <Dot tone={tone} />}
      </span>
      <span className="flex min-w-0 flex-1">
        <Line text={label} />
      </span>
      {note !== undefined && <span className="shrink-0 text-muted text-xs">{note}</span>}
      {keys !== undefined && (
        <span className="max-sm:hidden">
          <Keys keys={keys} />
        </span>
      )}
    </>
  );
}
