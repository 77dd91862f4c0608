/** Maximum milliseconds between two requests for the same URL that count as a repeated read. */
const doubleFetchMs = 1_000;
/**
 * Maximum milliseconds by which news may precede the first of the two requests. The console delays a read until the
 * event stream opens, and the first events of the stream may cause another read. The console also collects changed
 * agents for up to a second before it reads them.
 */
const delayedMs = 1_500;

/**
 * A script that runs in every document before the document's own scripts. Reports a repeated read as an error on the
 * browser's console unless the page has received news: a chunk of the event stream, a WebSocket message, the response
 * to a write, or a failed request. The time at which the page handles the news counts, so late delivery on a busy
 * machine causes no report.
 */
export const reportRepeatedFetches = `{
  let newsAt = -Infinity;
  const news = () => { newsAt = performance.now(); };
  const fetched = new Map();
  // A page may repeat requests after a navigation.
  navigation.addEventListener('navigate', () => fetched.clear());

  const note = (url) => {
    const now = performance.now();
    const before = fetched.get(url);
    fetched.set(url, now);
    if (before !== undefined && now - before < ${doubleFetchMs} && newsAt < before - ${delayedMs})
      console.error('requested twice within ' + Math.round(now - before) + ' ms: ' + url);
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
        // Rejects if the connection breaks during the answer.
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
