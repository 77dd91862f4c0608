// Must be the first import, because other modules create style elements when they load.
import './nonce.ts';
import { session } from '../api/client.ts';
import { prefetchAgents, requestFirstAgents } from '../api/live/agent-list.ts';
import { startLive } from '../api/live/events.ts';
import { startLiveAgents } from '../api/live/live-agents.ts';
import type { Person } from '../api/sign-in/session.ts';
import type { PendingSignIn } from '../api/sign-in/sign-in.ts';
import { followSignInLinks, linkedSignIn } from './sign-in-link.ts';
import { startTheme } from './theme-choice.ts';

/**
 * Starts work that does not need the user interface: the theme, the session from an earlier page, sign-in links, the event
 * stream, and the first queries. This chunk runs as soon as it is loaded (vite.config.ts), so that requests are sent while the
 * browser is still loading the other chunks.
 */

/** Requests that must be sent before the page renders, because the page waits for their responses. */
interface EarlyQueries {
  /** Starts when a sign-in waits for confirmation. */
  readonly atLink: (pending: PendingSignIn) => void;
  /** Starts when the session begins. */
  readonly atSignIn: (person: Person) => void;
}
/** The keys are URL paths. */
const earlyQueries: Readonly<Record<string, EarlyQueries>> = {
  '/agents': { atLink: requestFirstAgents, atSignIn: prefetchAgents },
};

/**
 * Pages that most operators open first, by URL path. Their code loads along with the code that they share with other
 * pages, instead of after it.
 */
const earlyPages: Readonly<Record<string, () => Promise<unknown>>> = {
  '/': () => import('../pages/overview/overview-page.tsx'),
  '/agents': () => import('../pages/agents/agents-page.tsx'),
};

startTheme();
startLive();
startLiveAgents();
session.subscribe(() => {
  const state = session.state();
  if (state.status === 'live') earlyQueries[window.location.pathname]?.atSignIn(state.person);
});
linkedSignIn.subscribe(() => {
  const linked = linkedSignIn.state();
  if (linked?.status === 'pending') earlyQueries[window.location.pathname]?.atLink(linked.pending);
});
session.resume();
// Until the browser has loaded the rest, a signed-in operator sees the outlines of the page instead of an empty one.
if (session.state().status === 'live') document.getElementById('outlines')?.removeAttribute('hidden');
followSignInLinks();
// If this import fails, the router imports the page again and shows the error.
earlyPages[window.location.pathname]?.().catch(() => {});
