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

startLive();
startLiveAgents();
session.subscribe(() => {
  if (session.state().status === 'live') earlyQueries[window.location.pathname]?.();
});
followSignInLinks();
