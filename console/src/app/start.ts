// Must be the first import, because other modules create style elements when they load.
import './nonce.ts';
import { prefetchAgents } from '../api/agent-list.ts';
import { session } from '../api/client.ts';
import { startLive } from '../api/live/events.ts';
import { startLiveAgents } from '../api/live/live-agents.ts';
import { followSignInLinks } from './sign-in-link.ts';

/**
 * Starts work that does not need the user interface: sign-in links, the event stream, and the first queries. This chunk
 * runs as soon as it is loaded (vite.config.ts), so that requests are sent while the browser is still loading the other
 * chunks.
 */

/**
 * Queries that start at sign-in, because their large responses would delay the first render. The keys are URL paths.
 */
const earlyQueries: Readonly<Record<string, () => void>> = { '/agents': prefetchAgents };

/**
 * Pages that most operators open first, by URL path. Their code loads along with the code that they share with other
 * pages, instead of after it.
 */
const earlyPages: Readonly<Record<string, () => Promise<unknown>>> = {
  '/': () => import('../pages/overview/overview-page.tsx'),
  '/agents': () => import('../pages/agents/agents-page.tsx'),
};

startLive();
startLiveAgents();
session.subscribe(() => {
  if (session.state().status === 'live') earlyQueries[window.location.pathname]?.();
});
followSignInLinks();
// If it fails, the router imports the page again and shows the error.
earlyPages[window.location.pathname]?.().catch(() => {});
