import type { AgentConfig } from '../config.ts';
import type { Listener } from '../connection/listener.ts';

/**
 * Decides when to listen for announcements. If discovery is enabled, the agent listens whenever it has no link. If
 * discovery is disabled, the agent never listens. If the setting is missing, an agent that started without a known
 * orchestrator listens until its first link.
 */
export class Discovery {
  private readonly listener: Listener;
  private isLost: boolean;
  private isLinked = false;

  /** @param isLost whether the agent started without a known orchestrator */
  constructor(listener: Listener, isLost: boolean) {
    this.listener = listener;
    this.isLost = isLost;
  }

  update({ enabled, port }: AgentConfig['discovery'], isLinked = this.isLinked): void {
    this.isLinked = isLinked;
    if (isLinked) this.isLost = false;
    this.listener.listen(!isLinked && (enabled ?? this.isLost) ? port : null);
  }

  end(): void {
    this.listener.listen(null);
  }
}
