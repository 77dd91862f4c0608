// Must be the first import, before any module creates style elements.
import './nonce.ts';
import { prefetchAgents } from '../api/agent-list.ts';
import { session } from '../api/client.ts';
import { startLive } from '../api/live/event-stream.ts';
import { startLiveAgents } from '../api/live/live-agents.ts';
import { followSignInLinks } from './sign-in-link.ts';

/**
 * Starts work that does not need the user interface: signing in by link, the event stream, and the first queries. It is a
 * separate chunk that runs as soon as it is loaded (vite.config.ts), so that the orchestrator answers while the browser
 * loads the rest.
 */

/** Large queries to start at sign-in instead of at the first render, by path. */
const earlyQueries: Readonly<Record<string, () => void>> = { '/agents': prefetchAgents };

startLive();
startLiveAgents();
session.subscribe(() => {
  if (session.state().status === 'live') earlyQueries[window.location.pathname]?.();
});
followSignInLinks();
