/** A second request for the same URL within this time is a fault, unless the page has handled news in between. */
const doubleFetchMs = 1_000;
/** Milliseconds. The console delays a read until the event stream opens, whose first events may already affect the read. */
const heldBackMs = 500;

/**
 * Runs in every document before its own scripts. Reports a repeated read as an error on the browser's console.
 * News is each chunk of the event stream, each message of a WebSocket, each answer to a write, and each request that was
 * cut: after it the page may read again. News counts when the page handles it, so a busy machine that delivers it late does
 * not make a fault.
 */
export const reportRepeatedFetches = `{
  let newsAt = -Infinity;
  const news = () => { newsAt = performance.now(); };
  const fetched = new Map();
  // After a navigation by the user, the page may repeat requests.
  navigation.addEventListener('navigate', () => fetched.clear());

  const note = (url) => {
    const now = performance.now();
    const before = fetched.get(url);
    fetched.set(url, now);
    if (before !== undefined && now - before < ${doubleFetchMs} && newsAt < before - ${heldBackMs})
      console.error('asked twice within ' + Math.round(now - before) + ' ms: ' + url);
  };

  const { fetch } = window;
  window.fetch = async (input, init) => {
    const { href, pathname } = new URL(input, location.href);
    const isStream = pathname === '/api/v1/events';
    const isRead = (init?.method ?? 'GET') === 'GET';
    if (isRead && !isStream && pathname.startsWith('/api/')) note(href);
    try {
      const answer = await fetch(input, init);
      if (!isRead) news();
      if (!isStream || answer.body === null) {
        // Fails when the answer is cut.
        answer.clone().arrayBuffer().catch(news);
        return answer;
      }
      const counted = new TransformStream({
        transform(chunk, controller) {
          news();
          controller.enqueue(chunk);
        },
      });
      return new Response(answer.body.pipeThrough(counted), answer);
    } catch (error) {
      news();
      throw error;
    }
  };

  window.WebSocket = class extends WebSocket {
    constructor(...parts) {
      super(...parts);
      for (const event of ['open', 'message']) this.addEventListener(event, news);
    }
  };
}`;
