import { type AgentMessage, decodeContentFrame, type OrchestratorMessage } from '@muster/protocol/wire';
import type { ContentRequests } from '../converge/wanted-contents.ts';

/** Requests content over a link, with as many concurrent requests as the window allows. */
export class ContentReceiver {
  private readonly requests: ContentRequests;
  private readonly write: (message: AgentMessage) => void;

  constructor(requests: ContentRequests, write: (message: AgentMessage) => void) {
    this.requests = requests;
    this.write = write;
  }

  pump(): void {
    for (let part = this.requests.next(); part !== null; part = this.requests.next())
      this.write({ type: 'content_request', ...part });
  }

  /** @returns false if the frame is not a response to the oldest request */
  receive(frame: Uint8Array): boolean {
    const content = decodeContentFrame(frame);
    if (content === null || !this.requests.received(content.request, content.bytes)) return false;
    this.pump();
    return true;
  }

  refused({ request, message }: Extract<OrchestratorMessage, { type: 'content_refused' }>): boolean {
    const isKnown = this.requests.refused(request, message);
    this.pump();
    return isKnown;
  }

  end(): void {
    this.requests.unlinked();
  }
}
