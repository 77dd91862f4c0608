import { Link } from '@tanstack/react-router';
import { type ComponentType, useEffect, useState } from 'react';
import { Unreachable } from '../api/client.ts';
import { backoffs, importIfReachable } from '../api/live/load-code.ts';
import { sleep } from '../api/live/sleep.ts';
import { useLiveState } from '../api/live/use-live-state.ts';
import { Button, buttonClasses } from '../parts/button.tsx';
import { Callout } from '../parts/callout.tsx';

/**
 * Pages whose code is loaded on the first visit. If a page cannot be loaded because the orchestrator is restarting, the
 * console retries in place. The console never reloads by itself: that would discard unsaved input on a page that the
 * operator returns to, and the browser would show its own error.
 */

type Load = () => Promise<Record<string, unknown>>;

/** Preloads of all pages, in the order of the routes. */
const pagePreloads: (() => Promise<void>)[] = [];
/** Parts that are loaded later. The first part is needed when a session ends, which a restart may cause. */
const partPreloads: readonly (() => Promise<unknown>)[] = [
  () => import('./session-dialogs.tsx'),
  () => import('./person-menu.tsx'),
  () => import('./side-menu.tsx'),
  () => import('./palette/palette.tsx'),
  () => import('../editor/code-editor.tsx'),
  () => import('../editor/diff-view.tsx'),
  () => import('../charts/metric-charts.tsx'),
  () => import('../pages/terminals/live-terminal.tsx'),
  () => import('../pages/terminals/replay-terminal.tsx'),
];

/**
 * Returns a route component.
 * @param load imports the module of the page
 * @param name the page's export
 * @param Skeleton shown while the code is loading
 */
export function lazyPage(load: Load, name: string, Skeleton: ComponentType) {
  let Loaded: ComponentType | null = null;
  let pending: Promise<void> | null = null;
  const attempt = (): Promise<void> => {
    pending ??= importIfReachable(load)
      .then((module) => {
        Loaded = module[name] as ComponentType;
      })
      .finally(() => {
        pending = null;
      });
    return pending;
  };
  function LazyPage() {
    const [, setLoaded] = useState(false);
    return Loaded === null ? <PageLoader {...{ attempt, Skeleton }} onLoaded={() => setLoaded(true)} /> : <Loaded />;
  }
  // The router waits for this before it shows the page. After a failure, `PageLoader` retries.
  LazyPage.preload = async () => {
    if (Loaded === null) await attempt().catch(() => {});
  };
  pagePreloads.push(LazyPage.preload);
  return LazyPage;
}

/**
 * Loads the code of all pages, one at a time while the browser is idle, so that every page can be opened during a
 * restart.
 */
export async function preloadPages(signal: AbortSignal): Promise<void> {
  const parts = partPreloads.map((load) => () => importIfReachable(load));
  for (const preload of [...parts, ...pagePreloads]) {
    await new Promise((resolve) => whenIdle(() => resolve(null)));
    if (signal.aborted) return;
    await preload().catch(() => {});
  }
}

/** Calls a function when the browser is idle, or soon in Safari, which has no `requestIdleCallback`. */
const whenIdle = (act: () => void): void => {
  if ('requestIdleCallback' in window) window.requestIdleCallback(act);
  else setTimeout(act, 100);
};

/** Why a page is not loaded: no server responds, or the server has a different version, which lacks the file. */
type Trouble = 'unreachable' | 'missing';

/** Loads a page. Retries with increasing delays after failures, and immediately when the event stream reopens. */
function PageLoader({
  attempt,
  Skeleton,
  onLoaded,
}: {
  readonly attempt: () => Promise<void>;
  readonly Skeleton: ComponentType;
  readonly onLoaded: () => void;
}) {
  const isLive = useLiveState() === 'live';
  const [trouble, setTrouble] = useState<Trouble | null>(null);
  const [asked, setAsked] = useState(0);
  // biome-ignore lint/correctness/useExhaustiveDependencies: a change of the connection, or the operator, starts an attempt
  useEffect(() => {
    const abort = new AbortController();
    const { signal } = abort;
    const load = async () => {
      for (const delay of backoffs()) {
        if (signal.aborted) return;
        try {
          await attempt();
          if (!signal.aborted) onLoaded();
          return;
        } catch (error) {
          if (!signal.aborted) setTrouble(error instanceof Unreachable ? 'unreachable' : 'missing');
          await sleep(delay, signal);
        }
      }
    };
    void load();
    return () => abort.abort();
  }, [isLive, asked]);
  if (trouble === null) return <Skeleton />;
  return (
    <div className="p-4 sm:p-6" role="status">
      {trouble === 'missing' ? (
        <Callout
          tone="warn"
          title="The console was updated"
          action={<Button onClick={() => window.location.reload()}>Reload</Button>}
        >
          This page needs the new version. Reload the console to open it. You stay signed in, and drafts are kept.
        </Callout>
      ) : (
        <Callout
          tone="warn"
          title="This page is not loaded yet"
          action={
            <>
              <Button onClick={() => setAsked(asked + 1)}>Try again</Button>
              <Link to="/" className={buttonClasses('quiet')}>
                Go to the overview
              </Link>
            </>
          }
        >
          The orchestrator does not answer. The page opens as soon as it does.
        </Callout>
      )}
    </div>
  );
}
