// First: before everything that makes style elements.
import './nonce.ts';
import { askForAgents } from '../api/agent-list.ts';
import { session } from '../api/client.ts';
import { startLive } from '../api/live/event-stream.ts';
import { startLiveAgents } from '../api/live/live-agents.ts';
import { followSignInLinks } from './sign-in-link.ts';

/**
 * What can begin before anything can be drawn: signing in by the link that led here, following the stream, asking for what
 * the page will show. A file of its own that runs as soon as it is there (vite.config.ts): the orchestrator is at work
 * while the browser still reads the rest.
 */

/** What is so large that whoever signs in at the page should not wait for it until the page is drawn. */
const askedForEarly: Readonly<Record<string, () => void>> = { '/agents': askForAgents };

startLive();
startLiveAgents();
session.subscribe(() => {
  if (session.state().status === 'live') askedForEarly[window.location.pathname]?.();
});
followSignInLinks();
