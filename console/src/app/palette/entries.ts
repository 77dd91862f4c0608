import type { Agent } from '@muster/protocol/http';
import {
  BellOff,
  Boxes,
  Keyboard,
  KeyRound,
  ListChecks,
  LogOut,
  type LucideIcon,
  Monitor,
  Moon,
  Play,
  Plus,
  Server,
  SquareTerminal,
  Sun,
  Target,
} from 'lucide-react';
import { session } from '../../api/client.ts';
import { markAllRead } from '../../api/notifications.ts';
import { startPlan } from '../../api/operations.ts';
import { runAssignment } from '../../api/runs.ts';
import { agentParam, displayName, hasTerminalsDisabled, stateOf, tones } from '../../pages/agents/agent-state.ts';
import { opensApply } from '../../pages/apply/opens-apply.ts';
import { opensAddMachine } from '../../pages/enrollment/opens-add-machine.ts';
import { opensTerminal } from '../../pages/terminals/opens-terminal.ts';
import type { Tone } from '../../parts/badge.tsx';
import { notify, notifyError } from '../../parts/dialog/toast.tsx';
import { newItem } from '../../parts/url-state.ts';
import { destinations } from '../navigation.ts';
import { setTheme } from '../theme-choice.ts';
import type { Findable } from './rank.ts';

/** The entries of the palette: pages, agents, modules, and actions. */

export interface Entry extends Findable {
  readonly icon: LucideIcon;
  /** An agent's status, shown instead of an icon. */
  readonly tone?: Tone;
  /** Shown instead of the name. */
  readonly label?: string;
  /** A word to show after the name, such as an agent's state. */
  readonly note?: string;
  /** Keyboard shortcut with the same effect. */
  readonly keys?: string;
  readonly run: () => void;
}

/** Navigates to a page. */
export type Go = (
  to: string,
  target?: {
    readonly params?: Record<string, string>;
    readonly search?: Record<string, string>;
    readonly state?: object;
  },
) => void;

export const pageEntries = (go: Go): Entry[] =>
  destinations.map(({ path, label, icon, key }) => ({
    ...{ id: `page ${path}`, name: label, icon, keys: `g ${key}` },
    run: () => go(path),
  }));

export const moduleEntries = (modules: readonly { readonly name: string }[], go: Go): Entry[] =>
  modules.map(({ name }) => ({
    ...{ id: `module ${name}`, name, icon: Boxes },
    run: () => go('/modules/$module', { params: { module: name } }),
  }));

/** The part of an assignment that the palette needs. */
interface NamedAssignment {
  readonly name: string;
  readonly mode: 'enforce' | 'audit';
}

export const assignmentEntries = (assignments: readonly NamedAssignment[], go: Go): Entry[] =>
  assignments.map(({ name }) => ({
    ...{ id: `assignment ${name}`, name, icon: Target },
    run: () => go('/assignments/$assignment', { params: { assignment: name } }),
  }));

/** Maximum length of text to search in an agent's values. */
const maxTextLength = 256;

const agentEntry = (agent: Agent): Omit<Entry, 'run'> => ({
  id: `agent ${agent.node_id}`,
  name: displayName(agent).slice(0, maxTextLength),
  otherTexts: [agent.initial_hostname.slice(0, maxTextLength), agent.node_id],
  icon: Server,
  tone: tones[stateOf(agent)],
  note: stateOf(agent),
});

export const agentEntries = (agents: readonly Agent[], go: Go): Entry[] =>
  agents.map((agent) => ({
    ...agentEntry(agent),
    run: () => go('/agents/$agent', { params: { agent: agentParam(agent) } }),
  }));

export function actionEntries(go: Go, openHelp: () => void, isAdmin: boolean): Entry[] {
  const theme = (name: 'dark' | 'light' | 'system', icon: LucideIcon, label: string): Entry => ({
    ...{ id: `theme ${name}`, name: label, otherTexts: ['theme', 'appearance'], icon },
    run: () => setTheme(name),
  });
  return [
    ...(isAdmin
      ? [
          {
            ...{ id: 'add machine', name: 'Add machine', icon: Plus },
            otherTexts: ['enroll agent', 'new agent', 'enrollment token'],
            run: () => go('/agents', { state: opensAddMachine() }),
          },
        ]
      : []),
    { id: 'new module', name: 'New module', icon: Boxes, run: () => go('/modules/new') },
    { id: 'new assignment', name: 'New assignment', icon: Target, run: () => go('/assignments/new') },
    {
      ...{ id: 'new secret', name: 'New secret', icon: KeyRound },
      run: () => go('/secrets', { search: { edit: newItem } }),
    },
    {
      ...{ id: 'read notifications', name: 'Mark all notifications as read', icon: BellOff },
      run: () => void markAllRead().then(() => notify('All notifications are read'), notifyError),
    },
    theme('dark', Moon, 'Dark theme'),
    theme('light', Sun, 'Light theme'),
    theme('system', Monitor, 'System theme'),
    { id: 'shortcuts', name: 'Keyboard shortcuts', otherTexts: ['help keys'], icon: Keyboard, run: openHelp },
    {
      ...{ id: 'sign out', name: 'Sign out', otherTexts: ['log out'], icon: LogOut },
      run: () => void session.leave(),
    },
  ];
}

interface AgentAction {
  readonly words: readonly string[];
  readonly label: (agent: string) => string;
  readonly icon: LucideIcon;
  /** Returns whether a connected agent supports this action; by default, all agents do. */
  readonly isOffered?: (agent: Agent) => boolean;
  readonly run: (agent: Agent, go: Go) => void;
}

const agentActions: readonly AgentAction[] = [
  {
    words: ['plan'],
    label: (agent) => `Plan ${agent}`,
    icon: ListChecks,
    run: ({ node_id }, go) =>
      void startPlan({ node_id, modules: [] }).then(
        ({ operation_id }) => go('/operations/$operation', { params: { operation: operation_id } }),
        notifyError,
      ),
  },
  {
    words: ['apply'],
    label: (agent) => `Apply to ${agent}…`,
    icon: Play,
    run: (agent, go) => go('/agents/$agent', { params: { agent: agentParam(agent) }, state: opensApply() }),
  },
  {
    words: ['terminal', 'shell', 'ssh'],
    isOffered: (agent) => !hasTerminalsDisabled(agent),
    label: (agent) => `Open a terminal on ${agent}`,
    icon: SquareTerminal,
    run: (agent, go) => go('/terminals/new/$agent', { params: { agent: agentParam(agent) }, state: opensTerminal }),
  },
];

/**
 * Returns the plans or applies of assignments that a query such as `apply web` names, and the part of the query that
 * names the assignment. An assignment in audit mode cannot be applied.
 */
export function assignmentActionEntries(
  query: string,
  assignments: readonly NamedAssignment[],
  go: Go,
): { readonly entries: Entry[]; readonly query: string } {
  const [verb = '', ...rest] = query.split(/\s+/);
  if (verb !== 'plan' && verb !== 'apply') return { entries: [], query: '' };
  const entries = assignments
    .filter(({ mode }) => verb === 'plan' || mode === 'enforce')
    .map(({ name }): Entry => {
      const of = { id: `${verb} assignment ${name}`, name };
      return verb === 'plan'
        ? {
            ...{ ...of, label: `Plan assignment ${name}`, icon: ListChecks },
            run: () =>
              void runAssignment(name, 'plan').then(
                ({ run_id }) => go('/runs/$run', { params: { run: run_id } }),
                notifyError,
              ),
          }
        : {
            ...{ ...of, label: `Apply assignment ${name}…`, icon: Play },
            run: () => go('/assignments/$assignment', { params: { assignment: name }, state: opensApply() }),
          };
    });
  return { entries, query: rest.join(' ') };
}

/**
 * Returns the actions that a query such as `plan web-1` names, and the part of the query that names the agent. Plans
 * and terminals require a connected agent.
 */
export function agentActionEntries(
  query: string,
  agents: readonly Agent[],
  go: Go,
): { readonly entries: Entry[]; readonly query: string } {
  const [verb = '', ...rest] = query.split(/\s+/);
  const action = agentActions.find(({ words }) => words.includes(verb));
  if (action === undefined) return { entries: [], query: '' };
  const entries = agents
    .filter((agent) => stateOf(agent) === 'connected' && (action.isOffered?.(agent) ?? true))
    .map((agent) => {
      const { id, name, otherTexts } = agentEntry(agent);
      const label = action.label(name);
      // The agent's name is matched against the rest of the query; the label is only shown.
      return {
        ...{ id: `${verb} ${id}`, name, otherTexts: otherTexts ?? [], label, icon: action.icon },
        run: () => action.run(agent, go),
      };
    });
  return { entries, query: rest.join(' ') };
}
