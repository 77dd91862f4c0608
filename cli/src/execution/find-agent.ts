/** What verbs call it that name one agent; see choose-agents.ts for several at once. */
export { agentLabel, agentNames } from '../text/agent-label.ts';
export { chooseAgent as findAgent } from './choose-agents.ts';
