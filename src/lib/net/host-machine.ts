/**
 * The name of the machine itself for containers, whose own loopback is different. The egress proxy maps the name to its
 * own loopback, so agents in Docker can reach what the operator allows there.
 */
export const HOST_MACHINE = 'host.docker.internal'

/**
 * The name of the model gateway for containers. The egress proxy serves it itself. Its name is neither a private
 * address nor below `.local`: before a task, the engine calls those without a proxy, and skips the task if that fails.
 */
export const MODEL_HOST = 'model.berth.internal'
export const MODEL_PORT = 80
