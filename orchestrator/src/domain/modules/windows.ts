import { MusterError } from '@muster/protocol';
import type { Agent, Window } from '@muster/protocol/http';
import { attributesOf, isEmpty, matchesSelector, parseSelector, type Selector } from '@muster/protocol/selector';
import {
  deleteWindow,
  insertWindow,
  openSelectors,
  setWindow,
  windowById,
  windows as windowRows,
} from '../../store/queries/windows.ts';
import { statement } from '../../store/transaction.ts';
import { requireSelector } from '../agents/agents.ts';
import { audited, type Happening } from '../audit/audit.ts';
import { type Actor, type Context, seconds } from '../shared/context.ts';
import { mapPage, type Page, type PageRequest, readPage } from '../shared/page.ts';

/** Maintenance windows: periods in which work on machines is allowed and its notifications are muted. */

interface OpenWindow {
  /** Null matches every agent. */
  readonly selector: Selector | null;
  readonly ends_at: number;
}
export type OpenWindows = readonly OpenWindow[];

export async function openWindows(context: Context, at = seconds(context.now())): Promise<OpenWindows> {
  const open: OpenWindow[] = [];
  for (const { id, selector, ends_at } of await context.db.all(openSelectors, { at })) {
    const parsed = selector === null ? null : parseSelector(selector);
    // A newer release may parse selectors more strictly. The window then matches no agent.
    if (parsed !== null && !parsed.ok)
      context.log.warn({ window_id: id }, 'failed to parse the selector of a maintenance window');
    else open.push({ selector: parsed === null ? null : parsed.selector, ends_at });
  }
  return open;
}

/** Reports whether one of the windows matches this agent. */
export const covers = (windows: OpenWindows, agent: Pick<Agent, 'tags' | 'attributes'>): boolean =>
  coveredUntil(windows, agent) !== null;

/** Returns when the last open window that matches the agent closes, in Unix seconds; null if none matches. */
export function coveredUntil(windows: OpenWindows, agent: Pick<Agent, 'tags' | 'attributes'>): number | null {
  const ends = windows
    .filter(({ selector }) => selector === null || (!isEmpty(selector) && matchesSelector(selector, agent)))
    .map(({ ends_at }) => ends_at);
  return ends.length === 0 ? null : Math.max(...ends);
}

type Row = NonNullable<Awaited<ReturnType<typeof findRow>>>;
const findRow = ({ db }: Context, id: string) => db.get(windowById, { id });

const toWindow = (row: Row): Window => ({
  id: row.id,
  starts_at: row.starts_at,
  ends_at: row.ends_at,
  reason: row.reason,
  created_by: row.created_by,
  selector: row.selector,
  ...warningsOf(row.selector),
});

/**
 * Returns warnings about selectors on attributes, because a compromised agent can choose its attributes to match a
 * window.
 */
function warningsOf(selector: string | null): Pick<Window, 'warnings'> {
  const parsed = selector === null ? null : parseSelector(selector);
  const attributes = parsed?.ok ? attributesOf(parsed.selector) : [];
  if (attributes.length === 0) return {};
  const named = attributes.map((key) => `attr.${key}`).join(', ');
  const warning = `the selector uses ${named}, which agents report themselves: a compromised agent can choose to match this window and mute its notifications; select by tags instead`;
  return { warnings: [warning] };
}

/** Lists windows, latest start first. */
export async function listWindows({ db }: Context, request: PageRequest): Promise<Page<Window>> {
  return mapPage(await readPage(request, (page) => db.all(windowRows, page)), toWindow);
}

export async function getWindow(context: Context, id: string): Promise<Window> {
  const row = await findRow(context, id);
  if (!row)
    throw new MusterError('window_not_found', `there is no maintenance window ${JSON.stringify(id.slice(0, 64))}`);
  return toWindow(row);
}

function requireOrder(startsAt: number, endsAt: number): void {
  if (endsAt > startsAt) return;
  const message = 'must be after starts_at';
  throw new MusterError('invalid_input', `ends_at ${message}`, [{ path: '/ends_at', message }]);
}

const happened = (
  type: 'window.created' | 'window.updated' | 'window.removed',
  actor: Actor,
  window: Window,
  metadata: Record<string, unknown>,
): Happening => ({
  type,
  actor,
  target: { type: 'window', id: window.id, name: window.reason },
  summary: `maintenance window "${window.reason}" ${type.slice('window.'.length)}`,
  metadata,
});

export interface NewWindow {
  starts_at: number;
  ends_at: number;
  reason: string;
  selector?: string | undefined;
}

/**
 * Creates a window.
 * @throws MusterError invalid_input unless the window ends after it starts; selector_invalid
 */
export async function createWindow(context: Context, actor: Actor, requested: NewWindow): Promise<Window> {
  requireOrder(requested.starts_at, requested.ends_at);
  if (requested.selector !== undefined) requireSelector(requested.selector, '/selector');
  const { starts_at, ends_at, reason } = requested;
  const selector = requested.selector ?? null;
  const id = context.newId();
  const row = { id, starts_at, ends_at, reason, created_by: actor.id, selector };
  const window: Window = { ...row, ...warningsOf(selector) };
  await context.db.write({
    name: 'windows/create',
    statements: [
      statement(insertWindow, { ...row, created_at: seconds(context.now()) }),
      audited(context, happened('window.created', actor, window, { starts_at, ends_at, selector })),
    ],
  });
  context.bus.publish({ type: 'windows_changed' });
  return window;
}

/**
 * Changes a window. Undefined fields keep their values.
 * @throws MusterError window_not_found; invalid_input unless the window ends after it starts
 */
export async function updateWindow(
  context: Context,
  actor: Actor,
  id: string,
  change: { ends_at?: number | undefined; reason?: string | undefined },
): Promise<Window> {
  const window = await getWindow(context, id);
  const { ends_at, reason } = change;
  if (ends_at !== undefined) requireOrder(window.starts_at, ends_at);
  const changed = {
    ...(ends_at !== undefined && ends_at !== window.ends_at ? { ends_at } : {}),
    ...(reason !== undefined && reason !== window.reason ? { reason } : {}),
  };
  if (Object.keys(changed).length === 0) return window;
  const updated = { ...window, ...changed };
  await context.db.write({
    name: 'windows/update',
    statements: [
      // Only the requested fields are written, because other fields may be changed concurrently.
      statement(
        setWindow({ ends_at: 'ends_at' in changed, reason: 'reason' in changed }),
        { id, ...changed },
        { expect: 'changed', else: 'window_not_found' },
      ),
      audited(context, happened('window.updated', actor, updated, changed)),
    ],
  });
  context.bus.publish({ type: 'windows_changed' });
  return getWindow(context, id);
}

/**
 * Removes a window.
 * @throws MusterError window_not_found
 */
export async function removeWindow(context: Context, actor: Actor, id: string): Promise<void> {
  const window = await getWindow(context, id);
  await context.db.write({
    name: 'windows/remove',
    statements: [
      statement(deleteWindow, { id }, { expect: 'changed', else: 'window_not_found' }),
      audited(
        context,
        happened('window.removed', actor, window, {
          starts_at: window.starts_at,
          ends_at: window.ends_at,
          selector: window.selector,
        }),
      ),
    ],
  });
  context.bus.publish({ type: 'windows_changed' });
}
