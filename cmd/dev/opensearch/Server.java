import java.util.List;
import java.util.Map;
import org.opensearch.common.settings.Settings;
import org.opensearch.node.InternalSettingsPreparer;
import org.opensearch.node.Node;
import org.opensearch.transport.Netty4Plugin;

/** One node of OpenSearch, without the security manager and the checks of its launcher, which refuses to run as root. */
public class Server extends Node {
	Server(Settings settings) {
		super(InternalSettingsPreparer.prepareEnvironment(settings, Map.of(), null, () -> "giantstream-dev"),
			List.of(Netty4Plugin.class), false);
	}

	/** Arguments: home, folder of data, port of HTTP, port of the transport. */
	public static void main(String[] args) throws Exception {
		Server server = new Server(Settings.builder().put("path.home", args[0]).put("path.data", args[1])
			.put("network.host", "127.0.0.1").put("http.port", args[2]).put("transport.port", args[3])
			.put("http.type", "netty4").put("transport.type", "netty4").put("discovery.type", "single-node")
			.put("cluster.name", "giantstream-dev").put("node.store.allow_mmap", false)
			// Tests have little disk left as often as not.
			.put("cluster.routing.allocation.disk.threshold_enabled", false).build());
		Runtime.getRuntime().addShutdownHook(new Thread(() -> {
			try {
				server.close();
			} catch (Exception e) {
				e.printStackTrace();
			}
		}));
		server.start();
		System.out.println("OpenSearch listens");
		Thread.currentThread().join();
	}
}
