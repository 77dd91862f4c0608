import type { Sample } from '@muster/protocol';

/**
 * Generates samples that resemble those of real machines: constant totals, fluctuating levels, and increasing counters.
 */
export class SampleLoad {
  readonly nodes: readonly string[];
  private readonly levels: { memory: number; disk: number; rx: number; tx: number; cpu: number }[];
  private state = 1;

  constructor(agents: number) {
    this.nodes = Array.from({ length: agents }, (_, n) => n.toString(16).padStart(32, '0'));
    this.levels = this.nodes.map(() => ({
      memory: 1e9 + this.random() * 3e9,
      disk: 1e10 + this.random() * 5e10,
      rx: this.random() * 1e11,
      tx: this.random() * 1e11,
      cpu: this.random() * 50,
    }));
  }

  /** Returns a number in [0, 1). The sequence is the same in every run. */
  private random(): number {
    this.state = (Math.imul(this.state, 1664525) + 1013904223) >>> 0;
    return this.state / 2 ** 32;
  }

  sample(agent: number, at: number): Sample {
    const level = this.levels[agent]!;
    level.memory = Math.max(1e8, level.memory + (this.random() - 0.5) * 5e7);
    level.disk += this.random() * 1e6;
    level.rx += this.random() * 1e7;
    level.tx += this.random() * 1e7;
    level.cpu = Math.min(100, Math.max(0, level.cpu + (this.random() - 0.5) * 10));
    return {
      collected_at: at,
      cpu_usage: Math.round(level.cpu * 10) / 10,
      memory_total: 8_589_934_592,
      memory_used: Math.round(level.memory / 4096) * 4096,
      swap_used: 0,
      disk_total: 107_374_182_400,
      disk_used: Math.round(level.disk / 4096) * 4096,
      load1: Math.round(level.cpu * 4) / 100,
      net_rx_bytes: Math.round(level.rx),
      net_tx_bytes: Math.round(level.tx),
      processes: 140 + Math.floor(this.random() * 20),
      uptime: at - 1_700_000_000,
    };
  }
}
